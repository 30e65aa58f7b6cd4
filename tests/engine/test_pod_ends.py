"""What the journal learns of pods that leave: how long they take to end, and how long a budget holds the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.fleets import budget, day_and_night, pod, with_node
from vgpuctl.engine.pod_ends import PodEnds
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.past_pods import PastPods
from vgpuctl.model.pods import Pod
from vgpuctl.planning.steps import Drain

FLEET, _ = day_and_night()
ONE, TWO = (Drain("worker-1"), 0.0), (Drain("worker-2"), 0.0)
WEB = "default/ReplicaSet/some"


def web(name: str, **more: Any) -> Pod:
    return pod(name, labels={"app": "web"}, grace_s=30, **more)


def at(*pods: Pod, allowed: int | None = None, **elsewhere: tuple[Pod, ...]) -> Fleet:
    some = with_node(with_node(FLEET, "worker-1", pods=pods), "worker-2", pods=elsewhere.get("two", ()))
    return replace(some, budgets=() if allowed is None else (budget("web", allowed, app="web"),))


def test_a_pod_ends_this_long_after_its_eviction() -> None:
    ends = PodEnds()
    ends.look(at(web("a"), web("b")), [ONE], 1.0)
    assert ends.found() == ()
    ends.look(at(web("a", terminating=True), web("b", terminating=True)), [ONE], 2.0)
    ends.look(at(web("b", terminating=True)), [ONE], 5.0)
    ends.look(at(), [], 9.0)
    assert ends.found() == (PastPods(workload=WEB, end_s=5.0, grace_s=30),)


def test_a_pod_that_was_never_seen_ending_left_after_the_last_look() -> None:
    ends = PodEnds()
    ends.look(at(web("a"), web("b")), [ONE], 1.0)
    ends.look(at(web("b")), [ONE], 1.5)
    assert ends.found()[0].end_s == 0.5


def test_a_budget_refills_this_long_after_each_round() -> None:
    ends = PodEnds()
    a, b, c = web("a"), web("b"), web("c")
    ends.look(at(a, b, two=(c,), allowed=1), [ONE, TWO], 0.0)
    ends.look(at(replace(a, terminating=True), b, two=(c,), allowed=0), [ONE, TWO], 1.0)
    ends.look(at(b, two=(replace(c, terminating=True),), allowed=0), [ONE, TWO], 7.0)
    ends.look(at(replace(b, terminating=True), allowed=0), [ONE], 11.0)
    ends.look(at(), [], 12.0)
    assert ends.found()[0].refill_s == 5.0


def test_what_a_budget_allows_at_once_is_what_it_allowed_before_the_first_eviction() -> None:
    ends = PodEnds()
    a, b, c = web("a"), web("b"), web("c")
    ends.look(at(a, two=(b, c), allowed=2), [ONE, TWO], 0.0)
    going = (replace(b, terminating=True), replace(c, terminating=True))
    ends.look(at(a, two=going, allowed=0), [ONE, TWO], 1.0)
    ends.look(at(replace(a, terminating=True), allowed=1), [ONE], 5.0)
    ends.look(at(), [], 6.0)
    assert ends.found()[0].refill_s == 4.0


def test_without_a_budget_nothing_is_said_of_refills() -> None:
    ends = PodEnds()
    ends.look(at(web("a"), web("b")), [ONE], 0.0)
    ends.look(at(web("b")), [ONE], 5.0)
    ends.look(at(), [], 10.0)
    assert ends.found()[0].refill_s is None


def test_the_wait_for_a_later_wave_is_no_budgets() -> None:
    ends = PodEnds()
    a, c = web("a"), web("c")
    ends.look(at(a, two=(c,), allowed=1), [ONE], 0.0)
    ends.look(at(replace(a, terminating=True), two=(c,), allowed=0), [ONE], 1.0)
    later = (Drain("worker-2"), 600.0)
    ends.look(at(two=(c,), allowed=1), [later], 600.0)
    ends.look(at(two=(replace(c, terminating=True),), allowed=0), [later], 601.0)
    ends.look(at(allowed=1), [], 602.0)
    assert ends.found()[0].refill_s == 1.0


def test_a_worker_that_is_gone_ends_its_drain() -> None:
    ends = PodEnds()
    ends.look(at(web("a", terminating=True)), [ONE], 1.0)
    ends.look(replace(FLEET, workers={}), [ONE], 4.0)
    assert ends.found()[0].end_s == 3.0
