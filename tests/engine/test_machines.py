"""Workers that Cluster API manages, in virtual time: their Machines are shielded before the sleep, and freed once they
are back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from vgpuctl.model.machine import SHIELD_ANNOTATION
from vgpuctl.sim.faults import KUBERNETES, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, default_inventory

DAY = {"worker-1", "worker-2", "worker-3", "worker-4"}
OURS = {SHIELD_ANNOTATION: "true", "vgpuctl.io/marks": "skip-remediation"}
THEIRS = {SHIELD_ANNOTATION: ""}
BY_DAY = {"infra-1": {}, **{name: {} for name in sorted(DAY)}, "worker-5": THEIRS}
BY_NIGHT = {**BY_DAY, **dict.fromkeys(sorted(DAY), OURS)}
#: Longer than the health check waits, from the moment at which the silence is noticed.
LONG_S = 400.0
Annotations = dict[str, dict[str, str]]


class Estate(Rehearsal):
    """The mission's host under Cluster API, by day, in virtual time."""

    @classmethod
    def by_day(cls) -> Estate:
        found = cls.of(replace(at_work(default_inventory()), cluster_api=True), Durations())
        found.wait(60)
        return found

    def told(self) -> Annotations:
        items = self.world.kubernetes.store.sorted("machines")
        return {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in items}

    def fail(self, code: int, **more: Any) -> str:
        rule = Rule(server=KUBERNETES, method="PATCH machines", effect=Effect(how=How.FAIL, what=str(code)), **more)
        return self.world.calls.faults.add(rule).id

    def patched(self) -> int:
        return sum(key.startswith(("Shield/", "Unshield/")) for key in self.sent)


def test_no_health_check_replaces_who_sleeps_or_wakes() -> None:
    estate = Estate.by_day()
    for shift, marks in (("night", BY_NIGHT), ("day", BY_DAY)) * 2:
        assert estate.switch(shift).finished
        estate.wait(LONG_S)
        assert estate.told() == marks
    assert (estate.patched(), estate.broken) == (4 * len(DAY), [])


@pytest.mark.parametrize("shift", ["night", "day"])
def test_after_a_crash_at_any_write_the_rest_is_done_and_nothing_twice(shift: str) -> None:
    for die_after in range(0, 30, 3):
        estate = Estate.by_day()
        if shift == "day":
            estate.switch("night")
        before = estate.patched()
        estate.switch(shift, die_after=die_after)
        estate.switch(shift)
        estate.wait(LONG_S)
        assert estate.told() == (BY_NIGHT if shift == "night" else BY_DAY), die_after
        assert estate.patched() - before <= len(DAY) + 1, "what was on its way may be asked for again"
        assert estate.broken == []


def test_a_switch_that_goes_back_takes_its_marks_off() -> None:
    estate = Estate.by_day()
    rule = Rule(
        server="vcenter", method="PowerOnVM_Task", on="worker-5", effect=Effect(how=How.FAIL, what="NoPermission")
    )
    estate.world.calls.faults.add(rule)
    estate.switch("night")
    assert estate.awake() == DAY
    assert estate.told() == BY_DAY


def test_a_worker_whose_node_was_deleted_while_it_slept_is_freed() -> None:
    estate = Estate.by_day()
    estate.switch("night")
    estate.kubectl("DELETE", "/api/v1/nodes/worker-1")
    estate.wait(LONG_S)
    assert estate.told() == BY_NIGHT
    estate.switch("day")
    assert estate.told() == BY_DAY


def test_where_marks_cannot_be_set_just_now_nobody_is_put_to_sleep() -> None:
    estate = Estate.by_day()
    estate.fail(500)
    ended = estate.switch("night")
    assert "did not shield its Machine" in str(ended.state.going_back["esx-1"])
    assert estate.told() == BY_DAY
    assert estate.awake() == DAY


def test_marks_that_cannot_be_taken_off_just_now_turn_no_day_back() -> None:
    estate = Estate.by_day()
    estate.switch("night")
    rule = estate.fail(500)
    ended = estate.switch("day")
    assert (ended.finished, dict(ended.state.going_back)) == (True, {})
    assert estate.told() == BY_NIGHT
    estate.world.calls.faults.clear(rule)
    estate.switch("day")
    assert estate.told() == BY_DAY
