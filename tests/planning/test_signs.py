"""What a failed switch hangs on: each change that may help is seen, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given

from tests.support.fleets import (
    CATALOGUE,
    HALF,
    budget,
    card,
    day_and_night,
    fleets_and_wishes,
    node,
    pod,
    timetable,
    with_node,
    with_worker,
)
from tests.support.planned import Case
from vgpuctl.basics.fingerprint import fingerprint
from vgpuctl.engine.ends import ends
from vgpuctl.engine.run_state import Attempt, RunState
from vgpuctl.model.fleet import Fleet, Power, Stranger, Task
from vgpuctl.model.journal import DONE, WENT_BACK
from vgpuctl.model.plan import Plan
from vgpuctl.model.pods import Disk
from vgpuctl.model.profiles import WorkerRule
from vgpuctl.planning.planner import plan
from vgpuctl.planning.signs import (
    MOST_BYTES,
    MOST_SIGNS,
    at_rest,
    changed_since,
    files_sign,
    host_key,
    pods_failed_on,
    signs_of,
    unmoved,
)
from vgpuctl.planning.steps import Drain, PowerOn, WaitDetached
from vgpuctl.reporting.causes import StepRefused

Change = Callable[[Fleet], Fleet]
BUDGET = budget("gateway", 0, app="gateway")
GATEWAY = pod("gateway-7f9", "worker-1", labels={"app": "gateway"})


def failed_fleet(**more: Any) -> Fleet:
    """By day, with a pod that a budget holds, a volume, and another program's task."""
    fleet, _ = day_and_night(budgets=(BUDGET,), **more)
    inside = node("worker-1", pods=(GATEWAY, pod("notebook-1")), disks=(Disk("pv-1", "default/data"),))
    task = Task(key="task-1", kind="relocate", running=True)
    return with_worker(fleet, "worker-1", node=inside, tasks=(task,))


def signs(fleet: Fleet) -> dict[str, str]:
    keys = [key for step in FAILED for key in step.hangs_on(fleet)]
    return signs_of(fleet, keys, {})


FAILED = (Drain("worker-1"), WaitDetached("worker-1"), PowerOn("worker-5"))


def with_host(fleet: Fleet, **changes: Any) -> Fleet:
    return replace(fleet, hosts={"esx-1": replace(fleet.hosts["esx-1"], **changes)})


def with_budget(fleet: Fleet, **changes: Any) -> Fleet:
    return replace(fleet, budgets=tuple(replace(each, **changes) for each in fleet.budgets))


def with_pods(fleet: Fleet, *pods: Any) -> Fleet:
    return with_node(fleet, "worker-1", pods=pods)


CHANGES: dict[str, Change] = {
    "pod default/gateway-7f9 has left worker-1": lambda fleet: with_pods(fleet, pod("notebook-1")),
    "pod default/gateway-7f9 on worker-1 is another one now": lambda fleet: with_pods(
        fleet, replace(GATEWAY, uid="new"), pod("notebook-1")
    ),
    "budget default/gateway allows an eviction again": lambda fleet: with_budget(fleet, allowed=1),
    "budget default/gateway is gone": lambda fleet: replace(fleet, budgets=()),
    "volume default/data has left worker-1": lambda fleet: with_node(fleet, "worker-1", disks=()),
    "worker worker-1 is suspended": lambda fleet: with_worker(fleet, "worker-1", power=Power.SUSPENDED),
    "worker worker-5 carries grid_v100-8q": lambda fleet: with_worker(fleet, "worker-5", vgpus=(HALF,)),
    "worker worker-5 is gone": lambda fleet: replace(
        fleet, workers={name: each for name, each in fleet.workers.items() if name != "worker-5"}
    ),
    "vCenter has ended relocate on worker-1": lambda fleet: with_worker(fleet, "worker-1", tasks=()),
    "the cards of esx-1 hold other VMs, or are set differently": lambda fleet: replace(
        fleet, strangers={"desktop": Stranger(name="desktop", host="esx-1", vgpus=(HALF,))}
    ),
}


@pytest.mark.parametrize("words", CHANGES)
def test_each_change_that_may_help_is_seen_and_named(words: str) -> None:
    fleet = failed_fleet()
    assert words.replace("suspended", Power.SUSPENDED) in changed_since(CHANGES[words](fleet), signs(fleet))


def test_a_worker_that_leaves_or_takes_a_card_is_seen() -> None:
    fleet = failed_fleet()
    asleep = with_worker(fleet, "worker-3", power=Power.SUSPENDED)
    words = ("the cards of esx-1 hold other VMs, or are set differently",)
    assert changed_since(asleep, signs(fleet)) == changed_since(fleet, signs(asleep)) == words


def test_a_card_that_is_set_differently_is_seen() -> None:
    fleet = failed_fleet()
    assert changed_since(with_host(fleet, cards=(card(0), card(1))), signs(fleet)) == (
        "the cards of esx-1 hold other VMs, or are set differently",
    )


@pytest.mark.parametrize("bad", [{"maintenance": True}, {"connected": False}])
def test_a_host_that_is_well_again_is_seen_and_one_that_gets_worse_is_not(bad: dict[str, bool]) -> None:
    fleet = failed_fleet()
    worse = with_host(fleet, **bad)
    assert changed_since(worse, signs(fleet)) == ()
    (words,) = changed_since(fleet, signs(worse))
    assert words in {"host esx-1 is no longer in maintenance", "host esx-1 is no longer disconnected"}


def test_changed_files_are_seen_only_against_a_sign_of_them() -> None:
    fleet = failed_fleet()
    known = {**signs(fleet), "files": "a"}
    assert changed_since(fleet, known, "b") == ("the files have changed",)
    assert changed_since(fleet, known, "a") == changed_since(fleet, known) == ()
    assert changed_since(fleet, signs(fleet), "b") == ()


@given(fleets_and_wishes())
def test_nothing_has_changed_in_an_unchanged_fleet(case: Case) -> None:
    fleet, wish = case
    keys = [key for step in plan(fleet, wish) for key in step.hangs_on(fleet)]
    found = signs_of(fleet, keys, {})
    assert changed_since(fleet, found) == ()
    assert changed_since(fleet, at_rest(fleet, found)) == ()
    assert not found or any(key.startswith("host ") for key in found)


NOISE: dict[str, Change] = {
    "a node renews its lease": lambda fleet: with_node(
        fleet, "worker-1", lease_renewed="L9", heartbeat="H9", version="99", alive_s=30.0
    ),
    "a node gets a label": lambda fleet: with_node(fleet, "worker-1", labels={"theirs": "x"}),
    "the switch takes its cordon off": lambda fleet: with_node(fleet, "worker-1", unschedulable=False),
    "a budget counts anew and allows nothing": lambda fleet: with_budget(
        fleet, version="99", healthy=2, desired=2, expected=2
    ),
    "a budget has not counted yet": lambda fleet: with_budget(fleet, allowed=1, seen=False),
    "another budget opens": lambda fleet: replace(fleet, budgets=(*fleet.budgets, budget("other", 3, app="other"))),
    "a pod comes": lambda fleet: with_pods(fleet, GATEWAY, pod("notebook-1"), pod("late")),
    "a pod is not ready": lambda fleet: with_pods(fleet, replace(GATEWAY, ready=False), pod("notebook-1")),
    "a pod runs elsewhere": lambda fleet: replace(fleet, elsewhere=(node("infra-1", pods=(pod("x", "infra-1"),)),)),
    "a worker that it did not fail on sleeps": lambda fleet: with_node(fleet, "worker-3", pods=()),
    "a volume comes": lambda fleet: with_node(
        fleet, "worker-1", disks=(Disk("pv-1", "default/data"), Disk("pv-2", "default/more"))
    ),
    "the host's books lag": lambda fleet: with_host(fleet, cards=(replace(fleet.hosts["esx-1"].cards[0], holds=()),)),
    "a server is not heard": lambda fleet: replace(fleet, stale=("vCenter",), workers={}, budgets=()),
}


@pytest.mark.parametrize("noise", NOISE)
def test_noise_is_no_change(noise: str) -> None:
    fleet = failed_fleet()
    assert changed_since(NOISE[noise](fleet), signs(fleet)) == ()


@pytest.mark.parametrize(("allows", "news"), [(0, False), (1, False), (2, True)])
def test_a_budget_that_gives_back_what_the_try_took_is_no_news(allows: int, news: bool) -> None:
    """Else each failed try would cause the next one."""
    fleet = with_budget(failed_fleet(), desired=2, expected=3, healthy=2)
    state = RunState(attempts={Drain.of("worker-2"): dict.fromkeys(("a", "b"), TAKEN)})
    found = signs_of(fleet, Drain("worker-1").hangs_on(fleet), state.spent())
    words = ("budget default/gateway allows more evictions than before",) if news else ()
    assert changed_since(with_budget(fleet, allowed=allows), found) == words


TAKEN = Attempt(sent_s=0.0, answered_s=1.0, spends={("default", "gateway"): "1"})


def test_a_refused_eviction_took_nothing() -> None:
    state = RunState(attempts={Drain.of("worker-2"): {"a": replace(TAKEN, error="429")}})
    assert state.spent() == {}


def test_what_the_way_back_changes_itself_is_no_change_afterwards() -> None:
    before = failed_fleet()
    after = with_worker(before, "worker-1", power=Power.SUSPENDED, tasks=())
    rest = at_rest(after, signs(before))
    assert changed_since(after, signs(before)) != ()
    assert changed_since(after, rest) == ()
    assert rest["pod default/gateway-7f9 on worker-1"] == "uid-gateway-7f9"


def test_until_the_way_back_has_ended_only_signs_that_it_does_not_change_are_kept() -> None:
    kept = unmoved(signs(failed_fleet()))
    assert {key.split(" ")[0] for key in kept} == {"host", "budget", "pod", "volume"}


def test_a_second_failure_adds_to_the_first_one_and_that_of_another_try_replaces_it() -> None:
    first, second = {"pod default/a on w": "1", "host esx-1": "connected"}, {"pod default/a on w": "2", "worker w": "x"}
    failed = RunState().turn_back("esx-1", StepRefused("w", "drain", "no"), ["w"])
    both = replace(failed, failed_on={"esx-1": first}).fail_on(["esx-1"], second)
    assert both.failed_on["esx-1"] == {**second, **first}
    anew = replace(both, going_back={}).fail_on(["esx-1"], second)
    assert anew.failed_on["esx-1"] == second


def test_a_pod_that_leaves_during_the_way_back_is_seen_afterwards() -> None:
    before = failed_fleet()
    after = with_pods(before, pod("notebook-1"))
    assert changed_since(after, at_rest(after, signs(before))) == ("pod default/gateway-7f9 has left worker-1",)


@pytest.mark.parametrize("letters", [1, 50])
def test_a_host_keeps_so_many_signs_and_the_weighty_ones_first(letters: int) -> None:
    many = [pod(f"{'p' * letters}-{n}", "worker-1", namespace="n" * letters) for n in range(200)]
    fleet = with_pods(failed_fleet(), *many, GATEWAY)
    found = signs(fleet)
    assert len(found) <= MOST_SIGNS
    assert sum(len(key) + len(value) for key, value in found.items()) <= MOST_BYTES
    assert list(found)[:3] == ["host esx-1", "card-room esx-1", "budget default/gateway"]
    assert GATEWAY.uid in pods_failed_on(found), "the pods that something holds come first"


def test_the_pods_to_drain_first_are_the_ones_that_had_not_left() -> None:
    fleet = failed_fleet()
    assert pods_failed_on(signs(fleet)) == {GATEWAY.uid, "uid-notebook-1"}
    assert pods_failed_on({"pod default/x on worker-1": "gone", "odd": "uid", "oddity x": "uid"}) == frozenset()


def test_signs_that_another_release_or_a_person_wrote_never_change() -> None:
    odd = {"oddity x": "1", "budget default/gateway": "many", "": "", "files": "", "pod": "x", host_key(""): "y"}
    assert changed_since(with_budget(failed_fleet(), allowed=5), odd, "") == ()


def test_a_report_says_what_its_host_failed_on_and_that_of_an_arrived_host_nothing() -> None:
    fleet, wish = day_and_night()
    cause = StepRefused("worker-1", "drain", "no")
    kept = {host_key("esx-1"): "connected"}
    (back,) = ends(wish, fleet, RunState(going_back={"esx-1": cause}).fail_on(["esx-1"], kept), Plan())
    (done,) = ends(wish, fleet, RunState(failed_on={"esx-1": kept}), Plan())
    assert (back.end, back.failed_on, done.end, done.failed_on) == (WENT_BACK, kept, DONE, {})


@dataclass(frozen=True)
class Thing:
    name: str
    things: frozenset[Any] = frozenset()
    named: dict[str, int] = field(default_factory=dict)
    where: str = ""


def test_a_fingerprint_is_that_of_the_value_alone() -> None:
    """Eight collides with zero, so these equal sets list their members in another order."""
    one = Thing("a", frozenset([8, 0]), {"x": 1, "y": 2}, "profiles.yaml:1")
    other = Thing("a", frozenset([0, 8]), {"y": 2, "x": 1}, "profiles.yaml:7")
    assert list(one.things) != list(other.things)
    assert fingerprint(one) == fingerprint(other)
    unlike = (replace(one, name="b"), replace(one, things=frozenset([8])), replace(one, named={"x": 1}), (one, one))
    assert len({fingerprint(each) for each in (one, *unlike)}) == 5


def test_the_files_sign_changes_with_what_they_say_and_not_with_their_layout() -> None:
    table = timetable(day=("worker-1",))
    rule = WorkerRule(profile="v100-4q-4GB", where="profiles.yaml:3")
    known = files_sign(replace(CATALOGUE, choices=(rule,)), table)
    assert files_sign(replace(CATALOGUE, choices=(replace(rule, where="profiles.yaml:9"),)), table) == known
    assert files_sign(CATALOGUE, table) != known
    assert files_sign(replace(CATALOGUE, choices=(rule,)), timetable(day=("worker-2",))) != known
