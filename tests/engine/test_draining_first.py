"""A second try in virtual time: the pods that the first one failed on leave before any other pod of their host."""

from __future__ import annotations

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from vgpuctl.engine.reactor import Decision
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.reporting.waits import sentence
from vgpuctl.sim.inventory import Durations, default_inventory

CORE = "/api/v1/namespaces/default"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DAY = {f"worker-{n}" for n in range(1, 5)}
DRAIN_S = 120


@pytest.fixture
def day() -> Rehearsal:
    """One pod on each of two workers; a budget holds the second one."""
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations())
    rehearsal.wait(60)
    rehearsal.drain(DrainOptions(force=True, timeout_s=DRAIN_S))
    return rehearsal


def bare(day: Rehearsal, name: str, node: str) -> str:
    """Its UID, once it runs."""
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "one"}]}
    made = day.kubectl("POST", f"{CORE}/pods", {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
    day.wait(5)
    return str(made["metadata"]["uid"])


def hold(day: Rehearsal, app: str) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    day.kubectl("POST", BUDGETS, {"metadata": {"name": app}, "spec": spec})
    day.wait(1)


def evicted(day: Rehearsal) -> list[str]:
    return [key for key in day.sent if key.startswith("Drain")]


def failed_once(day: Rehearsal) -> tuple[str, str]:
    """The UIDs of the pod that a budget held, and of another one that came after that try."""
    held = bare(day, "held", "worker-2")
    hold(day, "held")
    ended = day.switch("night")
    assert "held waits for budget held" in str(ended.state.going_back["esx-1"])
    day.wait(60)
    notebook = bare(day, "notebook", "worker-1")
    day.sent.clear()
    return held, notebook


def again(day: Rehearsal, held: str) -> Decision:
    day.drain_first = frozenset({held})
    return day.switch("night")


def test_a_try_that_fails_again_on_its_pod_has_evicted_no_other(day: Rehearsal) -> None:
    held, notebook = failed_once(day)
    ended = again(day, held)
    assert str(ended.state.going_back["esx-1"]).startswith(
        f"worker-2 did not drain within {DRAIN_S} s: held waits for budget held"
    )
    assert evicted(day) == []
    pods = {pod.uid for worker in day.fleet().workers.values() if worker.node for pod in worker.node.pods}
    assert {held, notebook} <= pods
    assert (day.awake(), day.cordoned() & DAY, day.broken) == (DAY, set(), [])


def test_without_that_the_other_pods_leave_for_nothing(day: Rehearsal) -> None:
    _, notebook = failed_once(day)
    assert day.switch("night").state.going_back
    assert f"Drain/worker-1/{notebook}" in evicted(day)


def test_once_its_budget_opens_the_pod_leaves_and_then_all_others(day: Rehearsal) -> None:
    held, notebook = failed_once(day)

    def open_later(fleet: Fleet) -> None:
        node = fleet.worker("worker-2").node
        if node and node.unschedulable and any(each.name == "held" for each in fleet.budgets):
            assert notebook in {pod.uid for pod in fleet.worker("worker-1").node.pods}  # type: ignore[union-attr]
            day.wait(20)
            day.kubectl("DELETE", f"{BUDGETS}/held")

    day.watch = open_later
    assert again(day, held).finished
    first, *others = evicted(day)
    assert first == f"DrainFirst/worker-2/{held}"
    assert f"Drain/worker-1/{notebook}" in others
    assert not any(held in key for key in others)
    assert (day.awake(), day.broken) == ({"worker-5"}, [])


def test_the_wait_names_the_pod_that_must_leave_first(day: Rehearsal) -> None:
    held, _ = failed_once(day)
    day.drain_first = frozenset({held})
    waits = day.switch("night", until_s=30).waits
    assert {step: sentence(wait) for step, wait in waits.items()} == {
        "DrainFirst/worker-2": "held waits for budget held (0 of 0 left)"
    }


def test_a_pod_that_took_over_the_name_leaves_with_all_others(day: Rehearsal) -> None:
    bare(day, "held", "worker-2")
    bare(day, "notebook", "worker-1")
    assert again(day, "an-earlier-uid").finished
    assert {key.split("/")[0] for key in evicted(day)} == {"Drain"}
    assert day.awake() == {"worker-5"}
