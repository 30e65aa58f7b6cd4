"""How long a drain is forecast to take: its pods until they end, and pods of one budget one after another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fleets import budget, day_and_night, pod, with_node
from tests.support.past import night
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.past_pods import PastPods, workload_name
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.planning.steps import Drain
from vgpuctl.reporting.pod_forecast import REFILL_S, PodTimes
from vgpuctl.reporting.step_history import Earlier, earlier

WEB = "default/ReplicaSet/some"


def past(end_s: float, grace_s: float = 30.0, refill_s: float | None = None) -> PastPods:
    return PastPods(workload=WEB, end_s=end_s, grace_s=grace_s, refill_s=refill_s)


def seen(*several: PastPods) -> Earlier:
    return earlier(night(number=n, pods=(each,)) for n, each in enumerate(several))


def with_pods(some: Fleet, **names: tuple[str, ...]) -> Fleet:
    for worker, pods in names.items():
        found = tuple(pod(name, labels={"app": "web"}, grace_s=30) for name in pods)
        some = with_node(some, worker.replace("_", "-"), pods=found)
    return some


def times_s(some: Fleet, known: Earlier, *workers: str) -> list[float]:
    times = PodTimes(some, known)
    return [times.takes_s(Drain(worker), 0.0) for worker in workers]


BY_DAY, _ = day_and_night()
ONE_POD = with_pods(BY_DAY, worker_1=("a",))


@pytest.mark.parametrize(
    ("known", "takes_s"),
    [
        (Earlier(), 30.0),
        (seen(past(4.0), past(5.0), past(25.0)), 5.0),
        (seen(past(50.0, grace_s=300.0)), 30.0),
        (seen(past(10.0, grace_s=10.0)), 30.0),
        (seen(past(10.0, grace_s=10.0), past(11.0, grace_s=11.0), past(20.0, grace_s=60.0)), 20.0),
        (seen(past(40.0, grace_s=40.0)), 30.0),
    ],
    ids=[
        "its grace, unknown",
        "the median",
        "its grace at most",
        "its grace, killed before",
        "killed too early to say",
        "killed later",
    ],
)
def test_a_pod_takes_as_long_as_such_pods_took(known: Earlier, takes_s: float) -> None:
    assert times_s(ONE_POD, known, "worker-1") == [takes_s]


def test_a_grace_that_the_timetable_sets_counts() -> None:
    drain = Drain("worker-1", DrainOptions(grace_period_s=7))
    assert PodTimes(ONE_POD, Earlier()).takes_s(drain, 0.0) == 7.0


def test_pods_of_one_budget_leave_one_after_another_wherever_they_are() -> None:
    some = with_pods(BY_DAY, worker_1=("a", "b"), worker_2=("c", "d"))
    one, two = (replace(some, budgets=(budget("web", n, app="web"),)) for n in (1, 2))
    known = seen(past(1.0, refill_s=10.0))
    assert times_s(some, known, "worker-1", "worker-2") == [1.0, 1.0]
    assert times_s(one, known, "worker-1", "worker-2") == [11.0, 31.0]
    assert times_s(two, known, "worker-1", "worker-2") == [1.0, 11.0]


def test_a_budget_that_allows_nothing_now_holds_its_first_pod_too() -> None:
    none = replace(ONE_POD, budgets=(budget("web", 0, app="web"),))
    assert times_s(none, seen(past(1.0, refill_s=10.0)), "worker-1") == [11.0]


def test_a_budget_never_seen_refills_as_others_did() -> None:
    none = replace(ONE_POD, budgets=(budget("web", 0, app="web"),))
    other = replace(past(9.0, refill_s=4.0), workload="default/ReplicaSet/other")
    assert times_s(none, seen(other), "worker-1") == [34.0]
    assert times_s(none, Earlier(), "worker-1") == [30.0 + REFILL_S]


def test_a_drain_that_begins_later_finds_the_budget_refilled() -> None:
    some = replace(with_pods(BY_DAY, worker_1=("a",), worker_2=("b",)), budgets=(budget("web", 1, app="web"),))
    times = PodTimes(some, seen(past(1.0, refill_s=10.0)))
    assert [times.takes_s(Drain("worker-1"), 0.0), times.takes_s(Drain("worker-2"), 100.0)] == [1.0, 1.0]


def test_a_drain_is_known_once_all_its_pods_are() -> None:
    times = PodTimes(with_node(ONE_POD, "worker-2", pods=(pod("x", owner="Job/new"),)), seen(past(1.0)))
    assert [times.knows(Drain(name)) for name in ("worker-1", "worker-2")] == [True, False]


@pytest.mark.parametrize(
    ("owner", "labels", "name"),
    [
        ("ReplicaSet/web-5c9f8", {"pod-template-hash": "5c9f8"}, "default/ReplicaSet/web"),
        ("ReplicaSet/web-5c9f8", {}, "default/ReplicaSet/web-5c9f8"),
        ("Job/backup-28374650", {}, "default/Job/backup"),
        ("StatefulSet/db", {}, "default/StatefulSet/db"),
        (None, {}, "default/Pod/notebook-anna"),
    ],
)
def test_a_workload_keeps_its_name_from_night_to_night(owner: str | None, labels: dict[str, str], name: str) -> None:
    assert workload_name(pod("notebook-anna", owner=owner, labels=labels)) == name
