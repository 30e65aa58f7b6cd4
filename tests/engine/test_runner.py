"""The runner's fence: who does not surely hold the Lease does not write."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from tests.support.fleets import CATALOGUE, WHOLE, day_and_night, fleet, node, timetable, worker
from tests.support.ports import Ports
from vgpuctl.engine.ports import Answer, Report
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.runner import REQUESTS_AT_ONCE, Progress, Runner
from vgpuctl.model.errors import BusyError
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.journal import DONE, INTERRUPTED, NOT_BEGUN, HostReport
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.model.requests import PatchNode, PowerOnVm, Request
from vgpuctl.model.wish import Wish
from vgpuctl.planning.wishes import Provisioning, provision_wish, switch_wish


def run(ports: Ports, wish: Wish | None = None) -> Report:
    wish = wish or day_and_night()[1]
    ports.runner = Runner(ports.world(), Goal(wish=wish), ports)
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
        HostReport(host="esx-2", end=INTERRUPTED, why="b-[1-3] before cordon", code="VG405"),
        HostReport(host="esx-3", end=NOT_BEGUN),
    )


class SlowServer(Ports):
    """Answers nothing until the run was interrupted, which happens once as many requests are out as may be."""

    def __init__(self, some: Fleet) -> None:
        super().__init__(some, held_at=[])
        self.interrupted, self.out = threading.Event(), threading.Semaphore(0)

    def send(self, request: Request) -> Answer:
        self.out.release()
        assert self.interrupted.wait(timeout=20)
        return super().send(request)

    def progress(self, progress: Progress) -> None:
        self.said.append(set())
        if len(self.said) == 2:
            assert all(self.out.acquire(timeout=20) for _ in range(REQUESTS_AT_ONCE))
            self.runner.interrupt()
            self.interrupted.set()


def test_who_interrupts_it_withdraws_the_requests_that_stand_in_line() -> None:
    """64 cordons are due at once, and 16 are on their way when Ctrl-C is pressed: no other is sent."""
    hosts = [f"esx-{n:02}" for n in range(64)]
    some = fleet(*(worker(f"{host}-a", host=host, node=node(f"{host}-a")) for host in hosts))
    names = tuple(some.workers)
    ports = SlowServer(some)
    report = run(ports, switch_wish(some, CATALOGUE, timetable(day=names, night=()), "night"))
    assert len(ports.sent) == REQUESTS_AT_ONCE
    assert report.interrupted
    ends = {host.host: host.end for host in report.hosts}
    cordoned = {request.node.removesuffix("-a") for request in ports.sent if isinstance(request, PatchNode)}
    assert {host for host, end in ends.items() if end == INTERRUPTED} == cordoned
    assert {host for host, end in ends.items() if end == NOT_BEGUN} == set(hosts) - cordoned


class FallsSilent(SlowServer):
    """Kubernetes is not heard any more once as many requests are out as may be, and answers those once it all stops."""

    def progress(self, progress: Progress) -> None:
        self.said.append(set())
        if progress.decision.state.stopping:
            self.interrupted.set()
        elif len(self.said) == 2:
            assert all(self.out.acquire(timeout=20) for _ in range(REQUESTS_AT_ONCE))
            self.some = replace(self.some, stale=("Kubernetes",))


def test_a_silence_that_ends_it_withdraws_what_stands_in_line_too() -> None:
    hosts = [f"esx-{n:02}" for n in range(64)]
    some = fleet(*(worker(f"{host}-a", host=host, node=node(f"{host}-a")) for host in hosts))
    ports = FallsSilent(some)
    wish = switch_wish(some, CATALOGUE, timetable(day=tuple(some.workers), night=()), "night")
    ports.runner = Runner(ports.world(), Goal(wish=wish, blind_s=0.0), ports)
    report = ports.runner.run()
    assert report.unheard == ("Kubernetes",)
    assert len(ports.sent) == REQUESTS_AT_ONCE


def test_a_host_with_sleepers_of_another_shift_on_which_nothing_was_asked_has_not_begun() -> None:
    asleep = Record(wish="day", state=ASLEEP, since="", cordoned=True, lease="L1", heartbeat="H1")
    awake = worker("a-1", host="esx-1", node=node("a-1"))
    sleeper = worker("a-2", WHOLE, host="esx-1", power=Power.SUSPENDED, node=node("a-2", record=asleep))
    some = fleet(awake, sleeper)
    ports = Ports(some, held_at=[])
    wish = switch_wish(some, CATALOGUE, timetable(day=("a-1",), night=("a-2",)), "night")
    ports.runner = Runner(ports.world(), Goal(wish=wish), ports)
    ports.runner.interrupt()
    assert ports.runner.run().hosts == (HostReport(host="esx-1", end=NOT_BEGUN),)
    assert ports.sent == []
