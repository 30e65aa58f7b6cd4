"""The runner's fence: who does not surely hold the Lease does not write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from tests.support.fleets import CATALOGUE, WHOLE, day_and_night, fleet, node, timetable, worker
from vgpuctl.engine.ports import Answer, Report, World
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.runner import REQUESTS_AT_ONCE, Progress, Runner
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import BusyError
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.journal import DONE, INTERRUPTED, NOT_BEGUN, Entry, HostReport
from vgpuctl.model.notice import Notice
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.model.requests import PatchNode, PowerOnVm, Request
from vgpuctl.model.wish import Wish
from vgpuctl.planning.wishes import Provisioning, provision_wish, switch_wish


@dataclass
class Ports:
    """All ports in one; the Lease is held as the script says, look by look."""

    some: Fleet
    held_at: list[bool]
    is_lost: bool = False
    now_s: float = 0.0
    look_s: float = 0.0
    sent: list[Request] = field(default_factory=list)
    said: list[set[str]] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)

    def fleet(self) -> Fleet:
        self.now_s += self.look_s
        return self.some

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def send(self, request: Request) -> Answer:
        self.sent.append(request)
        return Answer()

    def announce(self, notices: Sequence[Notice]) -> None: ...

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None: ...

    def held(self) -> bool:
        return self.held_at.pop(0) if self.held_at else True

    def lost(self) -> bool:
        return self.is_lost

    def release(self) -> None: ...

    def read(self) -> dict[str, Departure]:
        return {}

    def write(self, changed: Mapping[str, Departure | None]) -> None: ...

    def monotonic(self) -> float:
        return self.now_s

    def utc(self) -> str:
        return "now"

    def keep(self, entry: Entry) -> None: ...

    def close(self, entry: Entry) -> str:
        return ""

    def say(self, text: str) -> None: ...

    def progress(self, progress: Progress) -> None:
        """Ends the run after the third look."""
        self.said.append(set(progress.decision.waits.values()))
        attempts = progress.decision.memory.all_attempts()
        self.answered.append(sum(attempt.answered_s is not None for attempt in attempts))
        if len(self.said) >= 3:
            self.runner.interrupt()

    runner: Runner = field(init=False)


def run(ports: Ports, wish: Wish | None = None) -> Report:
    wish = wish or day_and_night()[1]
    world = World(observer=ports, sender=ports, lease=ports, clock=ports, departures=ports, journal=ports)
    ports.runner = Runner(world, Goal(wish=wish), ports)
    return ports.runner.run()


def test_without_the_lease_nothing_is_written_and_it_is_said() -> None:
    ports = Ports(day_and_night()[0], held_at=[False] * 100)
    run(ports)
    assert ports.sent == []
    assert ports.said[0] == {"the acting Lease cannot be heard"}


def test_with_it_the_cordons_are_sent() -> None:
    ports = Ports(day_and_night()[0], held_at=[])
    run(ports)
    assert len(ports.sent) >= 4


def test_a_lease_that_another_took_ends_the_run() -> None:
    ports = Ports(day_and_night()[0], held_at=[], is_lost=True)
    with pytest.raises(BusyError):
        run(ports)
    assert ports.sent == []


def test_looks_that_take_long_leave_as_much_time_to_requests_and_their_answers() -> None:
    ports = Ports(day_and_night()[0], held_at=[], look_s=0.2)
    run(ports)
    assert ports.answered[:2] == [0, 5], "the second look hears all five answers together"


class SlowMarks(Ports):
    """Answers no mark on a sleeper before somebody has been asked to wake."""

    def __init__(self, some: Fleet) -> None:
        super().__init__(some, held_at=[])
        self.woken, self.in_vain = threading.Event(), False

    def send(self, request: Request) -> Answer:
        if isinstance(request, PowerOnVm):
            self.woken.set()
        elif not self.woken.wait(timeout=20):
            self.in_vain = True
        return super().send(request)


def test_marks_on_sleepers_do_not_stand_before_who_must_wake() -> None:
    day = tuple(f"day-{n}" for n in range(2 * REQUESTS_AT_ONCE))
    asleep = Record(wish="day", state=ASLEEP, since="", cordoned=True, lease="L1", heartbeat="H1")
    waker = worker("night-1", WHOLE, power=Power.SUSPENDED, node=node("night-1", unschedulable=True, record=asleep))
    some = fleet(*(worker(name, power=Power.SUSPENDED) for name in day), waker)
    ports = SlowMarks(some)
    run(ports, switch_wish(some, CATALOGUE, timetable(day=day, night=("night-1",)), "night"))
    assert not ports.in_vain
    assert any(isinstance(request, PatchNode) for request in ports.sent)


def test_who_interrupts_it_is_told_of_each_host_where_it_stands() -> None:
    """The first is where it should be; on the second a worker was asked to go; the third waits for its wave."""
    done = worker("a-1", host="esx-1", node=node("a-1"))
    busy = [worker(f"b-{n}", host="esx-2", vgpus=(), node=node(f"b-{n}")) for n in range(1, 4)]
    later = worker("c-1", host="esx-3", vgpus=(), node=node("c-1"))
    some = fleet(done, *busy, later)
    report = run(Ports(some, held_at=[]), provision_wish(some, CATALOGUE, Provisioning(max_unavailable=1)))
    assert report.interrupted
    assert report.hosts == (
        HostReport(host="esx-1", end=DONE),
        HostReport(host="esx-2", end=INTERRUPTED, why="b-[1-3] before cordon"),
        HostReport(host="esx-3", end=NOT_BEGUN),
    )
