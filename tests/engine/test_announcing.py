"""The daemon plans each coming switch ahead, says what stands in its way, and may begin so early as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.fleets import CATALOGUE, WHOLE, budget, fleet, node, pod, with_node, with_worker, worker
from vgpuctl.basics.names import Names
from vgpuctl.daemon.announcing import Announcer
from vgpuctl.daemon.rounds import look
from vgpuctl.files import Files
from vgpuctl.model.departure import Departure
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.hold import Hold
from vgpuctl.model.journal import Entry
from vgpuctl.model.notice import Notice
from vgpuctl.model.orders import Orders, Override
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.timing import Timing
from vgpuctl.reporting.timetable_state import state_of

AT_20 = datetime(2026, 11, 18, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
#: The log shows the times of its machine.
HERE = f"{AT_20.astimezone():%H:%M}"
KEY = ("day-night", "esx-1")


def table(timing: Timing | None = None) -> Timetable:
    night = Shift("night", ("0 20 * * *",), workers=Names(("worker-5",)), timing=timing or Timing())
    shifts = {"day": Shift("day", ("0 8 * * *",), workers=Names(("worker-1",))), "night": night}
    return Timetable(name="day-night", timezone="UTC", shifts=shifts)


def by_day() -> Fleet:
    notebook = pod("notebook", "worker-1", labels={"app": "notebook"})
    return fleet(
        worker("worker-1", node=node("worker-1", pods=(notebook,))), worker("worker-5", WHOLE, power=Power.SUSPENDED)
    )


STUCK = (budget("notebook", 0, app="notebook"),)


@dataclass
class Told:
    said: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    asked: int = 0

    def history(self) -> list[Entry]:
        self.asked += 1
        return []

    def announce(self, found: Sequence[Notice]) -> None:
        self.notices += found


def minutes(told: Told, some: Fleet, first: int, last: int, timing: Timing | None = None) -> Announcer:
    """A look each minute, from so many minutes before the night until so many before it."""
    timetable = table(timing)
    files = Files(CATALOGUE, {timetable.name: timetable})
    announcer = Announcer(told, told.said.append)
    for before in range(first, last - 1, -1):
        announcer.look(some, files, timetable, AT_20 - before * MINUTE)
    return announcer


def test_before_its_hour_nothing_is_said_and_then_once() -> None:
    told = Told()
    minutes(told, by_day(), 90, 61)
    assert told.said == []
    minutes(told, by_day(), 90, 1)
    (said,) = told.said
    assert said.startswith(f"Nothing is in the way of night on day-night ({HERE}). It will take about ")
    assert told.asked == 1, "the history is read once for each start"


def test_what_holds_it_is_said_and_posted_on_the_node_and_so_is_its_end() -> None:
    told, timetable = Told(), table()
    files = Files(CATALOGUE, {timetable.name: timetable})
    announcer = Announcer(told, told.said.append)
    stuck = replace(by_day(), budgets=STUCK)
    for some, before in ((stuck, 30), (stuck, 29), (by_day(), 28)):
        announcer.look(some, files, timetable, AT_20 - before * MINUTE)
    assert "budget" in told.said[0]
    assert told.notices[0].warning
    assert told.notices[0].subject.name == "worker-1"
    assert told.said[-1].startswith(f"Nothing is in the way of night on day-night ({HERE}) any more.")


def test_what_people_hold_is_not_planned() -> None:
    told = Told()
    minutes(told, with_node(by_day(), "worker-1", hold=Hold(who="anna")), 30, 20)
    assert told.said == []


def test_a_start_inside_an_override_does_not_come_so_the_one_at_its_end_is_told() -> None:
    told = Told()
    until = AT_20 + 10 * MINUTE
    override = Override(timetable="day-night", shift="day", who="anna", since=AT_20 - 60 * MINUTE, until=until)
    minutes(told, replace(by_day(), orders=Orders(overrides={"day-night": override})), 30, 20)
    assert told.said[0].startswith(
        f"Nothing is in the way of night on day-night ({AT_20.astimezone() + 10 * MINUTE:%H:%M})."
    )


AUTO = Timing(early="auto")


def due_at(some: Fleet, before: timedelta, takes: timedelta = timedelta()) -> str:
    timetable = table(AUTO)
    found = look(some, Files(CATALOGUE, {timetable.name: timetable}), timetable, AT_20 - before, takes)
    assert found is not None
    return found.due.shift


def test_a_shift_begins_as_early_as_its_switch_takes() -> None:
    takes = minutes(Told(), by_day(), 30, 20, AUTO).takes("day-night")
    assert timedelta() < takes < 10 * MINUTE
    assert due_at(by_day(), takes + MINUTE, takes) == "day"
    assert due_at(by_day(), takes, takes) == "night"


NOTED = Outcome(timetable="day-night", host="esx-1", shift="night", start=AT_20, arrived=True)
LEFT = Departure(timetable="day-night", host="esx-1", origin="day", to="night", since="2026-11-18T19:57:00Z")


@pytest.mark.parametrize(
    ("known", "shift"),
    [
        ({"outcomes": {KEY: NOTED}}, "night"),
        ({"departures": {KEY: LEFT}}, "night"),
        ({"departures": {KEY: replace(LEFT, since="2026-11-17T19:57:00Z")}}, "day"),
        ({"departures": {KEY: replace(LEFT, since="")}}, "day"),
        ({"outcomes": {KEY: replace(NOTED, start=AT_20 - timedelta(days=1))}}, "day"),
    ],
)
def test_a_shift_that_has_begun_early_does_not_turn_back_before_its_start(known: dict[str, object], shift: str) -> None:
    """Once it has begun, less is left to do. A daemon that starts then knows no forecast, only the ledger."""
    some = replace(with_worker(by_day(), "worker-1", power=Power.SUSPENDED), **known)  # type: ignore[arg-type]
    assert due_at(some, 2 * MINUTE) == shift
    assert state_of(some, table(AUTO), AT_20 - 2 * MINUTE).due == shift
    assert due_at(some, timedelta(hours=10)) == "day"
