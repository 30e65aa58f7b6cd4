"""What a running switch of the daemon does otherwise, and what it notes about its hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fleets import CATALOGUE, WHOLE, fleet, node, with_node, with_worker, worker
from tests.support.ports import Ports
from vgpuctl.basics.names import Names
from vgpuctl.daemon.rounds import Round, look, wish_for
from vgpuctl.daemon.running import MORE_EVERY, Running, held_workers
from vgpuctl.daemon.shared_lease import SharedLease
from vgpuctl.engine.ports import Report
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.run_state import Attempt, RunState
from vgpuctl.files import Files
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import BusyError
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.hold import Hold
from vgpuctl.model.journal import DONE, FAILED, WENT_BACK, HostReport
from vgpuctl.model.ledger import outcome_key
from vgpuctl.model.orders import Orders, Override, Pause
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.timing import Timing
from vgpuctl.operations import Course
from vgpuctl.planning.outcomes import leftovers
from vgpuctl.planning.steps import Cordon
from vgpuctl.reporting.causes import StepRefused

AT_20 = datetime(2026, 11, 18, 20, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY, NIGHT = ("worker-1", "worker-6"), ("worker-5", "worker-7")
TABLE = Timetable(
    name="day-night",
    timezone="UTC",
    shifts={
        "day": Shift("day", ("0 8 * * *",), workers=Names(DAY)),
        "night": Shift("night", ("0 20 * * *",), workers=Names(NIGHT)),
    },
)
FILES = Files(CATALOGUE, {TABLE.name: TABLE})
WHY = StepRefused("worker-1", "suspend", "the host says no")


def by_day() -> Fleet:
    return fleet(
        worker("worker-1", node=node("worker-1")),
        worker("worker-5", WHOLE, power=Power.SUSPENDED),
        worker("worker-6", host="esx-2", node=node("worker-6")),
        worker("worker-7", WHOLE, host="esx-2", power=Power.SUSPENDED),
    )


@dataclass
class Around:
    at: datetime = AT_20 + timedelta(minutes=1)
    why: str = ""
    others: frozenset[str] = frozenset()

    def now(self) -> datetime:
        return self.at

    def why_stop(self) -> str:
        return self.why

    def takes(self, _timetable: str) -> timedelta:
        return timedelta()

    def taken(self, _timetable: str) -> frozenset[str]:
        return self.others


@dataclass
class Night:
    """A switch to night of some hosts, as the daemon began it."""

    some: Fleet
    hosts: tuple[str, ...] = ("esx-1", "esx-2")
    around: Around = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.around = Around()
        found = look(self.some, FILES, TABLE, self.around.at)
        assert isinstance(found, Round)
        self.goal = Goal(wish=wish_for(self.some, found, "night", self.hosts)[0])
        self.running = Running(found, "night", self.around, held_workers(self.some, self.some.workers, self.around.at))

    def course(self, some: Fleet | None = None, state: RunState | None = None) -> Course:
        return self.running.course(some or self.some, self.goal, state or RunState()) or Course()

    def more(self, some: Fleet | None = None, state: RunState | None = None) -> set[str]:
        """The hosts that it takes up, asked as often as that takes."""
        courses = [self.course(some, state) for _ in range(MORE_EVERY)]
        there = some or self.some
        return {there.host_of(name) for course in courses if course.more for name in course.more.workers}


def test_as_long_as_nothing_changes_it_goes_on() -> None:
    night = Night(by_day())
    assert (night.course(), night.more()) == (Course(), set())


def test_it_stops_for_a_person_and_for_the_next_shift() -> None:
    night = Night(by_day())
    night.around.why = "anna asks to be let pass."
    assert night.course().stop == "anna asks to be let pass."
    night.around.why, night.around.at = "", AT_20 + 12 * HOUR
    assert night.course().stop == "day is due now: night turns round at this point."


def test_it_stops_for_an_order_against_it() -> None:
    night, since = Night(by_day()), {"who": "anna", "since": AT_20}
    override = Orders(overrides={"day-night": Override(timetable="day-night", shift="day", **since)})  # type: ignore[arg-type]
    assert "ordered by anna" in night.course(replace(night.some, orders=override)).stop
    pause = Pause(at_once=True, **since)  # type: ignore[arg-type]
    assert night.course(replace(night.some, orders=Orders(pause=pause))).stop
    assert "worker-6 is held now" in night.course(with_node(night.some, "worker-6", hold=Hold(who="anna"))).stop


def test_a_plain_pause_lets_hosts_on_their_way_arrive() -> None:
    night = Night(by_day())
    moving = with_worker(night.some, "worker-1", power=Power.SUSPENDED)
    left = {each.key: each for each in night.goal.wish.departures.values() if each.host == "esx-1"}
    pause = Orders(pause=Pause(who="anna", since=AT_20))
    only = Night(by_day(), ("esx-1",))
    assert only.course(replace(moving, departures=left, orders=pause)).stop == ""


def test_on_an_old_picture_nothing_is_decided() -> None:
    night = Night(by_day())
    night.around.at = AT_20 + 12 * HOUR
    assert night.course(replace(night.some, stale=("vCenter",))) == Course()


def test_a_host_that_could_not_begin_is_taken_up_while_others_run() -> None:
    night = Night(by_day(), ("esx-1",))
    assert night.more() == {"esx-2"}
    night.around.others = frozenset({"esx-2"})
    assert night.more() == set(), "a switch of another timetable is at work there"


def test_a_failure_is_noted_as_soon_as_its_host_turns_back_and_only_once() -> None:
    night = Night(by_day())
    failed = RunState().turn_back("esx-1", WHY, ["worker-1"])
    noted = night.course(state=failed).record[outcome_key("day-night", "esx-1")]
    assert isinstance(noted, Outcome)
    assert (noted.tries, noted.parked, noted.again) == (1, False, night.around.at + timedelta(minutes=5))
    assert night.course(state=failed).record == {}
    assert night.more(state=failed) == set(), "it waits for its next try"
    night.around.at += timedelta(minutes=5)
    night.running.questions = MORE_EVERY - 1
    more = night.course(state=failed).more
    assert more is not None
    assert set(more.workers) == {"worker-1", "worker-5"}
    assert night.course(state=failed).record == {}, "it is not taken up yet, so it has not failed again"
    night.course(state=RunState())
    again = night.course(state=failed).record[outcome_key("day-night", "esx-1")]
    assert isinstance(again, Outcome)
    assert (again.tries, again.again) == (2, night.around.at + timedelta(minutes=10))


def test_after_the_last_try_a_host_is_parked() -> None:
    some = by_day()
    night = Night(some)
    before = Outcome(timetable="day-night", host="esx-1", shift="night", start=AT_20, tries=2)
    known = replace(some, outcomes={before.key: before})
    noted = night.course(known, RunState().turn_back("esx-1", WHY, [])).record[outcome_key("day-night", "esx-1")]
    assert isinstance(noted, Outcome)
    assert noted.parked
    assert noted.why == str(WHY)


def test_at_the_end_each_host_is_noted() -> None:
    some = by_day()
    for name in DAY:
        some = with_worker(some, name, power=Power.SUSPENDED)
    for name in NIGHT:
        some = with_worker(some, name, power=Power.ON)
    night = Night(by_day())
    ends = (HostReport(host="esx-1", end=DONE), HostReport(host="esx-2", end=WENT_BACK, why="why", code="VG402"))
    noted: Any = night.running.outcomes(Report(wish="night", hosts=ends), some)
    assert noted[outcome_key("day-night", "esx-1")].arrived
    assert (noted[outcome_key("day-night", "esx-2")].tries, noted[outcome_key("day-night", "esx-2")].code) == (
        1,
        "VG402",
    )


def test_a_host_whose_way_back_failed_too_is_noted_so() -> None:
    """Found by month 59: its way back was begun once more at once, and that counted as another try."""
    some = by_day()
    night = Night(some)
    night.course(some, RunState().turn_back("esx-1", WHY, []))
    both = HostReport(host="esx-1", end=FAILED, why="it went back. Going back failed too.", code="VG404")
    noted: Any = night.running.outcomes(Report(wish="night", hosts=(both,)), some)
    outcome = noted[outcome_key("day-night", "esx-1")]
    assert (outcome.tries, outcome.code, outcome.why) == (1, "VG404", both.why)


def test_two_switches_share_one_lease() -> None:
    ports, leading, made = Ports(by_day(), held_at=[]), [True], []

    def make() -> Ports:
        made.append(ports)
        return ports

    shared = SharedLease(make, lambda: leading[0])
    first, second = shared.share(), shared.share()
    for share in (first, second):
        share.acquire(lambda _: None, lambda: False)
    assert (len(made), first.held(), second.held()) == (1, True, True)
    first.release()
    assert (ports.released, first.held(), second.held()) == (0, False, True)
    leading[0] = False
    assert not second.held(), "without leadership nothing is written"
    second.release()
    assert ports.released == 1


def test_for_whom_it_waits_is_said_once_until_the_lease_is_taken() -> None:
    class Busy(Ports):
        def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
            say("anna holds the Lease.")
            if busy:
                raise BusyError("anna is at work", hint="wait")

    said, busy = list[str](), [True]
    shared = SharedLease(lambda: Busy(by_day(), held_at=[]), lambda: True)
    for _ in range(3):
        with pytest.raises(BusyError):
            shared.share().acquire(said.append, lambda: False)
    assert said == ["anna holds the Lease."]
    busy.clear()
    taken = shared.share()
    taken.acquire(said.append, lambda: False)
    taken.release()
    shared.share().acquire(said.append, lambda: False)
    assert len(said) == 2, "it is news again"


def test_a_switch_that_lost_the_lease_does_not_release_the_one_that_another_took_since() -> None:
    lost, taken = Ports(by_day(), held_at=[]), Ports(by_day(), held_at=[])
    leases = [lost, taken]
    shared = SharedLease(lambda: leases.pop(0), lambda: True)
    first, second = shared.share(), shared.share()
    first.acquire(lambda _: None, lambda: False)
    lost.is_lost = True
    second.acquire(lambda _: None, lambda: False)
    first.release()
    assert (lost.released, taken.released, second.held()) == (1, 0, True)


def test_a_host_that_has_not_begun_does_not_begin_once_its_start_is_skipped() -> None:
    """A server may have been silent since the switch began."""
    night = Night(by_day())
    shifts = {**TABLE.shifts, "night": replace(TABLE.shifts["night"], timing=Timing(skip_after=HOUR))}
    night.running.began = replace(night.running.began, timetable=replace(TABLE, shifts=shifts))
    night.around.at = AT_20 + HOUR
    assert night.course().stop == "night on esx-1 does not begin any more: skipped."
    asked = RunState(attempts={Cordon.of(name): {"": Attempt(sent_s=0)} for name in (*DAY, *NIGHT)})
    assert night.course(state=asked).stop == ""


def test_a_departure_of_a_host_that_is_whole_is_deleted() -> None:
    some = by_day()
    left = Departure(timetable="day-night", host="esx-1", origin="night", to="day")
    known = replace(some, departures={left.key: left})
    assert leftovers(known, TABLE, ["esx-1", "esx-2"]) == {left.key: None}
    moving = with_worker(known, "worker-1", power=Power.SUSPENDED)
    assert leftovers(moving, TABLE, ["esx-1"]) == {}
