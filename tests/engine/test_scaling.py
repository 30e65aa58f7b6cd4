"""Workloads that sleep in a shift, in virtual time with faults and crashes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from tests.support.trouble import NO_NIGHT
from vgpuctl.model.workloads import WorkloadSelector
from vgpuctl.sim.faults import KUBERNETES, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, default_inventory

NOTEBOOKS = "default/deployment/notebooks"


def a_day() -> Rehearsal:
    """The mission's host by day in virtual time; at night the notebooks are at zero."""
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations())
    timetable = rehearsal.files.timetables["day-night"]
    night = replace(timetable.shifts["night"], scale=(WorkloadSelector(kind="deployment", name="notebooks"),))
    timetable = replace(timetable, shifts={**timetable.shifts, "night": night})
    rehearsal.files = replace(rehearsal.files, timetables={"day-night": timetable})
    rehearsal.wait(60)
    return rehearsal


def notebooks(rehearsal: Rehearsal) -> tuple[int, bool]:
    """How large the workload is, and whether it bears our mark."""
    workload = rehearsal.fleet().workloads[NOTEBOOKS]
    return workload.replicas, workload.scaled is not None


def recorded(rehearsal: Rehearsal) -> int | None:
    """The size that it is to have again."""
    scaled = rehearsal.fleet().workloads[NOTEBOOKS].scaled
    return scaled.replicas if scaled else None


def pods_of(rehearsal: Rehearsal, app: str = "notebooks") -> int:
    """How many of its pods run."""
    pods = rehearsal.world.kubernetes.store.all("pods")
    mine = (pod for pod in pods if pod["metadata"]["labels"].get("app") == app)
    return sum(pod["status"]["phase"] == "Running" for pod in mine)


def test_a_night_that_is_cut_short_and_called_off_leaves_it_as_it_was() -> None:
    for die_after in range(1, 9, 2):
        rehearsal = a_day()
        day = rehearsal.awake()
        rehearsal.switch("night", die_after=die_after)
        assert rehearsal.switch("day").finished
        rehearsal.wait(60)
        assert (rehearsal.awake(), notebooks(rehearsal), pods_of(rehearsal)) == (day, (4, False), 4)
        assert rehearsal.broken == []


@pytest.mark.parametrize("die_after", range(1, 24, 4))
def test_whenever_it_is_cut_short_the_size_is_not_forgotten(die_after: int) -> None:
    rehearsal = a_day()
    for shift, stands in (("night", (0, True)), ("day", (4, False))):
        rehearsal.switch(shift, die_after=die_after)
        assert rehearsal.switch(shift).finished
        assert notebooks(rehearsal) == stands
        assert recorded(rehearsal) == {"night": 4, "day": None}[shift]
    sent = len(rehearsal.sent)
    assert rehearsal.switch("day").finished
    assert (len(rehearsal.sent), rehearsal.broken) == (sent, [])


FAULTS = {
    "fails": Effect(how=How.FAIL, what="503"),
    "is in conflict": Effect(how=How.FAIL, what="409"),
    "loses its reply": Effect(how=How.LOSE_REPLY),
    "hangs": Effect(how=How.HANG, seconds=30.0),
}


@pytest.mark.parametrize("effect", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("shift", ["night", "day"])
def test_whatever_becomes_of_the_patch_it_is_done_once(effect: Effect, shift: str) -> None:
    rehearsal = a_day()
    if shift == "day":
        assert rehearsal.switch("night").finished
    rehearsal.world.calls.faults.add(Rule(server=KUBERNETES, method="PATCH deployments", nth=1, effect=effect))
    assert rehearsal.switch(shift).finished
    assert notebooks(rehearsal) == {"night": (0, True), "day": (4, False)}[shift]
    assert rehearsal.broken == []


def test_a_night_that_cannot_come_gives_it_its_size_back() -> None:
    rehearsal = a_day()
    day = rehearsal.awake()
    rehearsal.world.calls.faults.add(NO_NIGHT)
    assert rehearsal.switch("night").state.going_back
    assert (rehearsal.awake(), notebooks(rehearsal), rehearsal.broken) == (day, (4, False), [])


@pytest.mark.parametrize("die_after", range(0, 28, 3))
def test_a_crash_and_then_a_night_that_cannot_come_gives_it_its_size_back(die_after: int) -> None:
    rehearsal = a_day()
    day = rehearsal.awake()
    rehearsal.world.calls.faults.add(NO_NIGHT)
    rehearsal.switch("night", die_after=die_after)
    rehearsal.wait(60)
    ended = rehearsal.switch("night")
    assert (ended.finished, bool(ended.state.going_back)) == (True, True)
    assert (rehearsal.awake(), notebooks(rehearsal), rehearsal.broken) == (day, (4, False), [])


def test_a_workload_that_may_not_be_patched_leaves_the_day_as_it_was() -> None:
    rehearsal = a_day()
    day = rehearsal.awake()
    forbidden = Effect(how=How.FAIL, what="403")
    rehearsal.world.calls.faults.add(Rule(server=KUBERNETES, method="PATCH deployments", effect=forbidden))
    ended = rehearsal.switch("night")
    assert f"{NOTEBOOKS} could not scale to zero" in str(ended.state.going_back["esx-1"])
    assert not [key for key in rehearsal.sent if key.startswith("Drain/")]
    assert (rehearsal.awake(), notebooks(rehearsal), rehearsal.cordoned() & day) == (day, (4, False), set())
