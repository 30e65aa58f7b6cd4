"""What cannot end well is refused before anything is touched, with the way out."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.fleets import (
    CATALOGUE,
    HALF,
    QUARTER,
    WHOLE,
    card,
    day_and_night,
    fleet,
    night_wish,
    node,
    pod,
    timetable,
    with_node,
    with_worker,
    worker,
)
from vgpuctl.model.conduct import Asleep, Conduct
from vgpuctl.model.fleet import Fleet, Mmio, Power, Stranger, Task
from vgpuctl.model.hold import Hold
from vgpuctl.model.orders import Maintenance, Orders
from vgpuctl.model.record import LEAVING, Record
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.step_id import StepId
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.model.wish import Wish
from vgpuctl.operations import look_ahead
from vgpuctl.planning.checks.refusals import refusals
from vgpuctl.planning.wishes import Provisioning, provision_wish, switch_wish
from vgpuctl.reporting.deviations import of_worker


def test_the_missions_night_is_not_refused() -> None:
    some, wish = day_and_night()
    assert refusals(some, wish) == ()


def test_a_card_that_a_stranger_keeps_is_no_place() -> None:
    day = worker("worker-1")
    some = fleet(
        day,
        worker("worker-5", WHOLE, on=False),
        cards={"esx-1": [card(0, "worker-1", "worker-9")]},
        strangers={"worker-9": Stranger(name="worker-9", vgpus=(QUARTER,))},
    )
    (refusal,) = refusals(some, night_wish_for(some))
    assert "no card will have room for worker-5" in refusal.message
    assert refusal.details == ("0000:3b:00.0 keeps worker-9 (grid_v100-4q)",)


def night_wish_for(some: Fleet) -> Wish:

    return switch_wish(some, CATALOGUE, timetable(day=("worker-1",), night=("worker-5",)), "night")


def test_pods_that_may_not_be_deleted_are_all_listed() -> None:
    some, _ = day_and_night()
    some = with_node(some, "worker-1", pods=(pod("bare", owner=None), pod("cache", empty_dir=True), pod("fine")))
    (refusal,) = refusals(some, night_wish(some))
    assert len(refusal.details) == 2
    assert refusals(some, night_wish(some, DrainOptions(force=True, delete_emptydir_data=True))) == ()


def test_a_worker_with_the_wrong_vgpu_is_not_woken() -> None:
    some, wish = day_and_night()
    some = with_worker(some, "worker-5", vgpus=(HALF,))
    (refusal,) = refusals(some, wish)
    assert refusal.hint == "Run: vgpuctl provision"


def test_a_running_vm_without_a_node_is_not_suspended() -> None:
    some, wish = day_and_night()
    (refusal,) = refusals(with_worker(some, "worker-1", node=None), wish)
    assert "no Kubernetes node" in refusal.message


def test_a_suspended_vm_keeps_its_devices() -> None:
    some = fleet(worker("worker-1", HALF, power=Power.SUSPENDED, profile="v100-4q-4GB"))
    wish = provision_wish(some, CATALOGUE, Provisioning())
    (refusal,) = refusals(some, wish)
    assert "suspended" in refusal.message
    assert refusal.hint.endswith("power it off in vCenter (its suspended state is lost), then run the same again.")


def test_one_hosts_refusal_holds_back_no_other() -> None:
    good, bad = (
        worker("worker-1"),
        worker("worker-2", host="esx-2", node=node("worker-2", pods=(pod("bare", owner=None),))),
    )
    some = fleet(good, bad)

    wish = switch_wish(some, CATALOGUE, timetable(day=("worker-1", "worker-2"), rest=()), "rest")
    preview = look_ahead(some, wish)
    assert {refusal.host for refusal in preview.refusals} == {"esx-2"}
    assert {step.subject for step in preview.plan} == {"worker-1"}


def test_where_it_is_all_or_nothing_one_refusal_holds_back_all() -> None:
    bare = node("worker-2", pods=(pod("bare", owner=None),))
    some = fleet(worker("worker-1"), worker("worker-2", host="esx-2", node=bare))
    whole = timetable(conduct=Conduct(all_or_nothing=True), day=("worker-1", "worker-2"), rest=())
    preview = look_ahead(some, switch_wish(some, CATALOGUE, whole, "rest"))
    assert {refusal.host for refusal in preview.refusals} == {"esx-2"}
    assert not preview.plan


def two_hosts(**first: Any) -> tuple[Fleet, Wish]:
    """Two by day on each, of 16 GB, which share a datastore; at night nobody is awake."""
    names = [f"{host}-{n}" for host in ("a", "b") for n in (1, 2)]
    workers = [worker(name, host=f"esx-{name[0]}", memory_mib=16384, datastore="store") for name in names]
    some = fleet(replace(workers[0], **first), *workers[1:])
    return some, switch_wish(some, CATALOGUE, timetable(day=tuple(names), night=()), "night")


@pytest.mark.parametrize(
    ("free_gib", "refused"), [(64, []), (63, ["esx-b"]), (32, ["esx-b"]), (31, ["esx-a", "esx-b"])]
)
def test_suspends_need_room_on_their_datastore(free_gib: int, refused: list[str]) -> None:
    some, wish = two_hosts()
    found = refusals(replace(some, datastores={"store": free_gib * 1024}), wish)
    assert [refusal.host for refusal in found] == refused
    assert all("asleep: off" in refusal.hint for refusal in found)
    off = replace(wish, conduct=Conduct(asleep=Asleep.OFF))
    assert refusals(replace(some, datastores={"store": 0}), off) == (), "who is shut down writes nothing"


def test_a_worker_that_vcenter_is_at_work_on_for_others_is_left_alone() -> None:
    def at_work(kind: str, **more: Any) -> tuple[Refusal, ...]:
        return refusals(*two_hosts(tasks=(Task(key="t", kind=kind, running=True),), **more))

    (refusal,) = at_work("createSnapshot")
    assert "createSnapshot" in refusal.message
    assert at_work("suspend") == (), "an earlier run of ours may have asked for that"
    ours = node("a-1", record=Record(wish="night", state=LEAVING, since="then"))
    assert at_work("createSnapshot", node=ours) == (), "what was begun is waited for"


def test_a_held_worker_refuses_its_host_by_name_unless_it_is_included() -> None:
    some, wish = two_hosts()
    hold = Hold(who="anna", until=datetime(2026, 11, 21, 8, 0).astimezone(), reason="driver test")
    some = with_node(some, "a-1", hold=hold)
    (refusal,) = refusals(some, wish)
    assert (refusal.host, refusal.code, refusal.details) == ("esx-a", "VG117", ())
    assert refusal.message == "a-1 is held by anna until 2026-11-21 08:00 (driver test)."
    assert {step.subject for step in look_ahead(some, wish).plan} == {"b-1", "b-2"}
    assert refusals(some, replace(wish, include_held=True)) == ()


def test_a_held_worker_that_stays_as_it_is_refuses_nothing_and_may_be_labelled() -> None:
    some, _ = day_and_night()
    some = with_node(some, "worker-1", hold=Hold(), labels={})
    by_day = switch_wish(some, CATALOGUE, timetable(day=("worker-1",), all=("worker-1",)), "day")
    assert {step.id for step in look_ahead(some, by_day).plan} == {StepId("Label", "worker-1")}
    assert refusals(some, by_day) == ()


MORNING = datetime(2026, 11, 21, 8, 0).astimezone()
PATCH = Maintenance(host="esx-a", who="bert", since=MORNING - timedelta(days=1), until=MORNING, reason="new card")
#: Before its end, and at it.
IN_FORCE = pytest.mark.parametrize(("seconds_left", "refused"), [(1, True), (0, False)])


@IN_FORCE
def test_a_host_under_maintenance_is_refused_by_name_until_it_ends(seconds_left: int, refused: bool) -> None:
    some, wish = two_hosts()
    some = replace(some, orders=Orders(maintenance={"esx-a": PATCH}))
    now = MORNING - timedelta(seconds=seconds_left)
    table = timetable(day=tuple(wish.workers), night=())
    found = refusals(some, wish := switch_wish(some, CATALOGUE, table, "night", now))
    said = "esx-a is under maintenance by bert until 2026-11-21 08:00 (new card)."
    assert [(each.code, each.message) for each in found] == [("VG118", said)] * refused
    assert refusals(some, replace(wish, include_held=True)) == ()
    assert refusals(some, switch_wish(some, CATALOGUE, table, "day", now)) == (), "nothing of it would move"


@IN_FORCE
def test_provision_refuses_a_host_under_maintenance_too(seconds_left: int, refused: bool) -> None:
    some = replace(fleet(worker("a-1", HALF, host="esx-a")), orders=Orders(maintenance={"esx-a": PATCH}))
    how = Provisioning(profile="v100-4q-4GB", now=MORNING - timedelta(seconds=seconds_left))
    assert [each.code for each in refusals(some, provision_wish(some, CATALOGUE, how))] == ["VG118"] * refused


def test_a_hold_whose_end_cannot_be_read_says_so() -> None:
    some, wish = two_hosts()
    (refusal,) = refusals(with_node(some, "a-1", hold=Hold(unreadable="hold-until is no time")), wish)
    assert refusal.message == "a-1 is held."
    assert refusal.details == ("the end of this hold cannot be read: hold-until is no time",)


def test_too_little_address_space_refuses_no_start_and_is_out_of_step() -> None:
    some, wish = day_and_night()
    narrow = with_worker(some, "worker-5", memory_mib=65536, mmio=Mmio(efi=True, use_64bit=True, size_gib=32))
    assert refusals(narrow, wish) == ()
    deviations = of_worker(narrow, narrow.worker("worker-5"), CATALOGUE, ())
    assert ("has no 64 GB", "vgpuctl provision") in {
        (each.what.partition(" of ")[0], each.remedy) for each in deviations
    }
