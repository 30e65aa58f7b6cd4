"""Who wins on a host: each line of the table in docs/how-to/daemon.md, from the top to the bottom."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fleets import CATALOGUE, WHOLE, fleet, node, pod, with_node, with_worker, worker
from vgpuctl.basics.names import Names
from vgpuctl.daemon.rounds import Round, look, wish_for
from vgpuctl.files import Files
from vgpuctl.model.departure import Departure
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.hold import Hold
from vgpuctl.model.orders import Maintenance, Orders, Override, Pause
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.model.selectors import Selector
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.timing import HoldWhile, PodSelector, Timing
from vgpuctl.planning.planner import plan
from vgpuctl.planning.verdicts import Hindrance

DAY = tuple(f"worker-{n}" for n in range(1, 5))
AT_8, AT_20 = datetime(2026, 11, 18, 8, tzinfo=UTC), datetime(2026, 11, 18, 20, tzinfo=UTC)
NOW = AT_20 + timedelta(minutes=5)
HOUR = timedelta(hours=1)
ANNA: dict[str, Any] = {"who": "anna", "since": NOW - HOUR}
KEY = ("day-night", "esx-1")


def table(**timing: timedelta | str) -> Timetable:
    night = Shift("night", ("0 20 * * *",), workers=Names(("worker-5",)), timing=Timing(**timing))  # type: ignore[arg-type]
    shifts = {"day": Shift("day", ("0 8 * * *",), workers=Names(DAY)), "night": night}
    return Timetable(name="day-night", timezone="UTC", shifts=shifts)


def by_day(**more: object) -> Fleet:
    """One host that was whole in day as the night began."""
    day = [
        worker(name, node=node(name, pods=(pod(f"notebook-{name}", name, labels={"app": "notebook"}),))) for name in DAY
    ]
    return replace(fleet(*day, worker("worker-5", WHOLE, power=Power.SUSPENDED)), **more)  # type: ignore[arg-type]


def on_the_way(some: Fleet) -> Fleet:
    left = Departure(
        timetable="day-night", host="esx-1", origin="day", to="night", since="2026-11-18T20:01:00Z", awake=DAY
    )
    return with_worker(replace(some, departures={left.key: left}), "worker-1", power=Power.SUSPENDED)


def outcome(**more: object) -> Outcome:
    given = {"timetable": "day-night", "host": "esx-1", "shift": "night", "start": AT_20, "tries": 1, **more}
    return Outcome(**given)  # type: ignore[arg-type]


def found(some: Fleet, now: datetime = NOW, timetable: Timetable | None = None) -> Round:
    timetable = timetable or table()
    got = look(some, Files(CATALOGUE, {timetable.name: timetable}), timetable, now)
    assert got is not None
    return got


def verdict(some: Fleet, now: datetime = NOW, timetable: Timetable | None = None) -> tuple[str, Hindrance | None]:
    got = found(some, now, timetable).verdicts["esx-1"]
    return got.shift, got.why


def moved(some: Fleet, now: datetime = NOW, timetable: Timetable | None = None) -> set[str]:
    """The workers for which the daemon would do more than change marks."""
    got = found(some, now, timetable)
    wishes = [wish_for(some, got, shift, got.hosts(shift))[0] for shift in got.shifts()]
    return {step.subject for wish in wishes for step in plan(some, wish) if step.lasts}


def test_a_start_is_carried_out() -> None:
    assert verdict(by_day()) == ("night", None)
    assert moved(by_day()) == {*DAY, "worker-5"}


def test_2_a_held_worker_is_not_moved_and_what_needs_its_card_stays_asleep() -> None:
    some = with_node(by_day(), "worker-1", hold=Hold(who="anna"))
    assert moved(some) == set()
    _, blocked = wish_for(some, found(some), "night", ["esx-1"])
    assert [each.host for each in blocked] == ["esx-1"]
    assert verdict(some) == ("night", None), "a hold is no failed try, and hinders no host as a whole"


def test_2_maintenance_holds_a_host_even_in_the_middle_of_a_switch() -> None:
    orders = Orders(maintenance={"esx-1": Maintenance(host="esx-1", **ANNA)})
    assert verdict(by_day(orders=orders)) == ("", Hindrance.MAINTENANCE)
    assert verdict(on_the_way(by_day(orders=orders))) == ("", Hindrance.MAINTENANCE)
    override = Override(timetable="day-night", shift="night", **ANNA)
    assert verdict(by_day(orders=replace(orders, overrides={"day-night": override}))) == ("", Hindrance.MAINTENANCE)


def test_3_a_switch_by_hand_is_not_undone_while_paused_or_parked() -> None:
    """Its order is an override: day stays due until the next start, and the pause or parking of before is no matter."""
    override = Override(timetable="day-night", shift="day", until=AT_8 + timedelta(days=1), **ANNA)
    for orders in (Orders(), Orders(pause=Pause(**ANNA))):
        some = by_day(orders=replace(orders, overrides={"day-night": override}), outcomes={KEY: outcome(parked=True)})
        assert moved(some) == set()


def test_4_a_pause_begins_nothing_and_finishes_what_runs() -> None:
    orders = Orders(pause=Pause(until=NOW + HOUR, **ANNA))
    assert verdict(by_day(orders=orders)) == ("", Hindrance.PAUSED)
    assert verdict(on_the_way(by_day(orders=orders))) == ("night", None)
    assert verdict(by_day(orders=orders), NOW + HOUR) == ("night", None), "it expires by itself"


def test_4_a_pause_at_once_stops_what_runs() -> None:
    orders = Orders(pause=Pause(at_once=True, **ANNA))
    assert verdict(on_the_way(by_day(orders=orders))) == ("", Hindrance.PAUSED)


def test_4_a_pause_wins_over_an_override_and_skip_after_runs_on() -> None:
    override = Override(timetable="day-night", shift="night", **ANNA)
    orders = Orders(pause=Pause(until=AT_20 + 3 * HOUR, **ANNA), overrides={"day-night": override})
    assert verdict(by_day(orders=orders)) == ("", Hindrance.PAUSED)
    ended = by_day(orders=Orders(pause=Pause(until=AT_20 + 3 * HOUR, **ANNA)))
    assert verdict(ended, AT_20 + 3 * HOUR, table(skip_after=2 * HOUR)) == ("", Hindrance.SKIPPED)


def test_5_a_parked_host_stays_until_its_reason_changes_or_the_next_start() -> None:
    signs = {"host esx-1": "disconnected"}
    some = by_day(outcomes={KEY: outcome(parked=True, tries=3, failed_on={"host esx-1": "connected"})})
    assert verdict(some) == ("", Hindrance.PARKED)
    assert verdict(by_day(outcomes={KEY: outcome(parked=True, failed_on=signs)})) == ("night", None)
    assert verdict(some, AT_20 + timedelta(hours=13)) == ("day", None)


def test_5_a_parked_host_wins_over_an_older_override_but_not_over_a_new_one() -> None:
    """An override is a start of its own: what failed before says nothing about it."""
    override = Override(timetable="day-night", shift="night", **ANNA)
    some = by_day(orders=Orders(overrides={"day-night": override}))
    assert verdict(replace(some, outcomes={KEY: outcome(parked=True)})) == ("night", None)
    assert verdict(replace(some, outcomes={KEY: outcome(parked=True, start=override.since)})) == ("", Hindrance.PARKED)


def test_5_a_host_that_failed_half_way_goes_back_and_waits_there() -> None:
    some = replace(on_the_way(by_day()), outcomes={KEY: outcome(again=NOW + HOUR)})
    assert verdict(some) == ("day", Hindrance.RETRY)
    assert verdict(some, NOW + HOUR) == ("night", None)
    both = replace(some, outcomes={KEY: outcome(again=NOW + HOUR, code="VG404")})
    assert verdict(both) == ("", Hindrance.RETRY), "where the way back failed too, it is not tried at each look"


def test_6_an_override_keeps_its_shift_through_starts_and_its_end_is_a_start() -> None:
    until = AT_20 + 2 * HOUR
    orders = Orders(overrides={"day-night": Override(timetable="day-night", shift="day", until=until, **ANNA)})
    some = by_day(orders=orders)
    assert found(some).due.shift == "day"
    assert moved(some) == set()
    assert (found(some, until).due.shift, found(some, until).due.start) == ("night", until)
    assert verdict(some, until + HOUR, table(skip_after=2 * HOUR)) == ("night", None), "skip_after counts from its end"
    assert verdict(some, until + 2 * HOUR, table(skip_after=2 * HOUR)) == ("", Hindrance.SKIPPED)


def test_6_no_rule_of_the_timetable_holds_an_override_back() -> None:
    orders = Orders(overrides={"day-night": Override(timetable="day-night", shift="night", **ANNA)})
    held_back = replace(table(min_run=23 * HOUR, skip_after=timedelta(0)), hold_while=NOTEBOOKS)
    assert verdict(by_day(orders=orders), NOW, held_back) == ("night", None)


def test_7_a_late_start_is_skipped_only_before_the_first_write() -> None:
    late = AT_20 + 2 * HOUR
    assert verdict(by_day(), late - timedelta(seconds=1), table(skip_after=2 * HOUR)) == ("night", None)
    assert verdict(by_day(), late, table(skip_after=2 * HOUR)) == ("", Hindrance.SKIPPED)
    assert verdict(on_the_way(by_day()), late, table(skip_after=2 * HOUR)) == ("night", None)
    failed = by_day(outcomes={KEY: outcome(again=AT_20 + HOUR)})
    assert verdict(failed, late, table(skip_after=2 * HOUR)) == ("night", None), "it did begin"
    broken = with_worker(by_day(outcomes={KEY: outcome(arrived=True, tries=0)}), "worker-1", power=Power.OFF)
    assert verdict(broken, late, table(skip_after=2 * HOUR)) == ("night", None), "what was in force is kept"


def test_7_a_shift_of_which_too_little_remains_is_not_begun() -> None:
    morning = AT_8 + timedelta(days=1)
    assert verdict(by_day(), morning - timedelta(minutes=30), table(min_run=HOUR)) == ("", Hindrance.TOO_SHORT)
    assert verdict(by_day(), morning - 2 * HOUR, table(min_run=HOUR)) == ("night", None)
    assert verdict(on_the_way(by_day()), morning - timedelta(minutes=30), table(min_run=HOUR)) == ("night", None)


NOTEBOOKS = HoldWhile(pods=(PodSelector(selector=Selector({"app": "notebook"})),))


def test_8_pods_hold_the_switch_back_until_begin_by() -> None:
    held_back = replace(table(begin_by=HOUR), hold_while=NOTEBOOKS)
    assert verdict(by_day(), NOW, held_back) == ("", Hindrance.PODS)
    assert verdict(by_day(), AT_20 + HOUR, held_back) == ("night", None)
    assert verdict(on_the_way(by_day()), NOW, held_back) == ("night", None)
    no_end = replace(table(), hold_while=NOTEBOOKS)
    assert verdict(by_day(), AT_20 + 11 * HOUR, no_end) == ("", Hindrance.PODS)


def test_8_skipping_wins_over_pods() -> None:
    held_back = replace(table(skip_after=HOUR), hold_while=NOTEBOOKS)
    assert verdict(by_day(), AT_20 + HOUR, held_back) == ("", Hindrance.SKIPPED)


@pytest.mark.parametrize(("minutes", "shift"), [(31, "day"), (30, "night"), (1, "night"), (0, "night")])
def test_9_a_shift_begins_early(minutes: int, shift: str) -> None:
    early = table(early=timedelta(minutes=30))
    got = found(by_day(), AT_20 - timedelta(minutes=minutes), early)
    assert got.due.shift == shift
    assert got.due.start == (AT_20 if shift == "night" else AT_8)


def test_9_what_a_person_ordered_is_not_ended_early() -> None:
    orders = Orders(overrides={"day-night": Override(timetable="day-night", shift="day", until=AT_20, **ANNA)})
    some = by_day(orders=orders)
    assert found(some, AT_20 - timedelta(minutes=10), table(early=timedelta(minutes=30))).due.shift == "day"


# What somebody moved by hand.


def at_night(**changes: object) -> Fleet:
    """The host has arrived in night; then something changed."""
    record = Record(wish="night", state=ASLEEP, since="2026-11-18T20:02:00Z")
    some = by_day(outcomes={KEY: outcome(arrived=True, tries=0)})
    for name in DAY:
        some = with_worker(with_node(some, name, record=record, pods=()), name, power=Power.SUSPENDED)
    return with_worker(some, "worker-5", power=Power.ON, **changes)


def test_a_worker_that_somebody_moved_is_left_alone_until_the_next_start() -> None:
    assert moved(at_night()) == set()
    woken = with_worker(at_night(), "worker-1", power=Power.ON)
    assert found(woken).hands == {"worker-1": "powered on by hand"}
    assert moved(woken) == set()
    suspended = with_worker(at_night(), "worker-5", power=Power.SUSPENDED)
    assert found(suspended).hands == {"worker-5": "suspended by hand"}
    assert moved(suspended) == set()
    assert found(woken, AT_20 + timedelta(hours=12)).hands == {}, "the next start takes it up"


def test_a_worker_that_failed_is_brought_back() -> None:
    off = with_worker(at_night(), "worker-5", power=Power.OFF)
    assert found(off).hands == {}
    assert moved(off) == {"worker-5"}


def test_before_a_host_has_arrived_nobody_can_say_who_moved_what() -> None:
    woken = with_worker(replace(at_night(), outcomes={}), "worker-1", power=Power.ON)
    assert found(woken).hands == {}
