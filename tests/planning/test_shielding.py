"""Where in the ladder a Machine is shielded and freed, and what of it is nobody's but ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fleets import (
    CATALOGUE,
    WHOLE,
    day_and_night,
    fleet,
    machine,
    night_wish,
    node,
    with_node,
    with_worker,
    worker,
)
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.machine import Machine
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.model.requests import PatchMachine
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.planner import plan
from vgpuctl.planning.wishes import Provisioning, former_wish, provision_wish

BARE = machine("worker-1")
OURS = replace(BARE, shielded=True, ours=True)
THEIRS = replace(BARE, shielded=True)


def by_day(mine: Machine | None) -> Fleet:
    return with_worker(day_and_night()[0], "worker-1", machine=mine)


def kinds(some: Fleet, name: str) -> list[str]:
    return [step.id.partition("/")[0] for step in plan(some, night_wish(some)).of(name)]


def test_it_is_shielded_after_the_drain_and_before_the_vm_stops() -> None:
    assert kinds(by_day(BARE), "worker-1") == ["Cordon", "Drain", "Shield", "Suspend", "MarkAsleep"]
    assert kinds(by_day(None), "worker-1") == ["Cordon", "Drain", "Suspend", "MarkAsleep"]


@pytest.mark.parametrize("marked", [OURS, THEIRS], ids=["ours", "theirs"])
def test_one_that_is_marked_already_needs_no_mark(marked: Machine) -> None:
    assert "Shield" not in kinds(by_day(marked), "worker-1")


def test_who_sleeps_already_gets_the_mark_that_is_missing() -> None:
    slept = Record(wish="night", state=ASLEEP, since="", cordoned=True, lease="L1", heartbeat="H1")
    some = with_worker(by_day(BARE), "worker-1", power=Power.SUSPENDED)
    some = with_node(some, "worker-1", record=slept, unschedulable=True)
    assert kinds(some, "worker-1") == ["Shield"]
    gone = with_worker(some, "worker-1", node=None)
    assert kinds(gone, "worker-1") == ["Shield"], "also where its node was deleted"


def test_it_is_freed_last_also_where_the_node_has_lost_our_record() -> None:
    some = by_day(OURS)
    back = plan(some, former_wish(night_wish(some))).of("worker-1")
    assert [step.id for step in back] == ["Unshield/worker-1"]
    silent = with_node(some, "worker-1", ready=False)
    back = plan(silent, former_wish(night_wish(silent))).of("worker-1")
    assert [step.id for step in back] == ["WaitBack/worker-1", "Unshield/worker-1"]
    theirs = by_day(THEIRS)
    assert not plan(theirs, former_wish(night_wish(theirs))).of("worker-1")


def test_who_is_shut_down_to_be_changed_is_shielded_meanwhile() -> None:
    some = fleet(worker("on", WHOLE, profile="v100-4q-4GB", node=node("on"), machine=machine("on")))
    steps = [step.id.partition("/")[0] for step in plan(some, provision_wish(some, CATALOGUE, Provisioning()))]
    assert steps == [
        *("Cordon", "Shield", "ShutDown", "Attach", "MarkAsleep", "PowerOn", "WaitBack", "Uncordon", "Unshield"),
    ]


def test_marks_of_others_are_neither_taken_off_nor_claimed() -> None:
    def law(mine: Machine | None, *, shield: bool, path: str = BARE.path) -> str:
        asked = replace(mine or BARE, path=path)
        return broken_by(PatchMachine(worker="worker-1", machine=asked, shield=shield), by_day(mine))

    for mine, shield in ((BARE, True), (OURS, True), (OURS, False)):
        assert law(mine, shield=shield) == ""
    for marked, shield in ((THEIRS, True), (THEIRS, False), (BARE, False), (None, True)):
        assert law(marked, shield=shield).count("law 3:") == 1
    assert "belongs to no worker of ours" in law(BARE, shield=True, path="/another")
