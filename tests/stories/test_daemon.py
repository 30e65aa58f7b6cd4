"""The daemon: the shift of the hour, through the same operation as `switch`."""

from __future__ import annotations

import io
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.fleets import CATALOGUE, LABELLED, QUARTER, fleet, node, worker
from tests.support.lab import Lab
from tests.support.ports import Ports
from vgpuctl.basics.names import Names
from vgpuctl.cli.acting.progress import Lines
from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.daemon.schedule_loop import ScheduleLoop
from vgpuctl.engine.ports import Answer, World
from vgpuctl.engine.runner import Listener
from vgpuctl.files import Files
from vgpuctl.model.errors import PassingError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.requests import Request
from vgpuctl.model.timetable import Shift, Timetable


def test_it_brings_the_shift_of_the_hour_and_keeps_it(lab: Lab) -> None:
    lab.vgpuctl("provision", "--yes").ok()
    lab.vgpuctl("label-nodes").ok()
    schedule = lab.folder / "schedules" / "day-night.yaml"
    schedule.write_text(schedule.read_text().replace("0 20 * * *", "* * * * *"))
    daemon = lab.start("daemon", stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: lab.awake() == {"worker-5"})
    finally:
        daemon.send_signal(signal.SIGTERM)
        out, _ = daemon.communicate(timeout=30)
    assert daemon.returncode == 0
    assert "night on day-night begins." in out


def wait_until(true: object) -> None:
    deadline = time.monotonic() + 30
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline


@dataclass
class Telling:
    said: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.said.append(text)

    def progress(self, progress: object) -> None:
        pass


@dataclass
class Broken:
    """A world in which every switch fails at its first look."""

    some: Fleet
    looks: int = 0
    fault: Exception = field(default_factory=lambda: PassingError("the Lease cannot be read"))

    def fleet(self) -> Fleet:
        self.looks += 1
        return self.some

    def world(self) -> World:
        raise self.fault


def keeper_at(
    now: list[datetime], connection: Any, listener: Telling | Callable[[], Listener], **more: Any
) -> ScheduleLoop:
    shifts = {
        "day": Shift("day", ("0 8 * * *",), workers=Names(("worker-1",))),
        "night": Shift("night", ("0 20 * * *",)),
    }
    timetable = Timetable(name="t", timezone="UTC", shifts=shifts)
    listening = listener if callable(listener) else lambda: listener
    return ScheduleLoop(Files(CATALOGUE, {**more, "t": timetable}), connection, listening, lambda: now[0])


def test_a_shift_that_stands_is_left_alone() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    awake = worker("worker-1", node=node("worker-1", labels=LABELLED))
    keeper_at(now, Broken(fleet(awake)), listener).keep()
    assert listener.said == []


def test_what_is_refused_again_and_again_is_tried_less_and_less() -> None:
    """A running worker without a node cannot be put to sleep: said, and looked at after 1, 2, 4 … 30 minutes."""
    now, listener = [datetime(2026, 11, 18, 21, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, node=None)))
    keeper = keeper_at(now, world, listener)
    tried = []
    for minute in range(120):
        before = world.looks
        keeper.keep()
        if world.looks > before:
            tried.append(minute)
        now[0] += timedelta(minutes=1)
    assert tried == [0, 1, 3, 7, 15, 31, 61, 91]
    assert "no Kubernetes node" in listener.said[0]


def test_the_next_shift_is_tried_at_once() -> None:
    now, listener = [datetime(2026, 11, 18, 19, 59, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, on=False, vgpus=())))
    keeper = keeper_at(now, world, listener)
    keeper.keep()
    looks = world.looks
    now[0] += timedelta(seconds=30)
    keeper.keep()
    assert world.looks == looks
    now[0] += timedelta(seconds=31)
    keeper.keep()
    assert world.looks == looks + 1


def test_a_server_that_is_away_is_asked_again_without_a_pause() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, on=False)))
    keeper = keeper_at(now, world, listener)
    for _ in range(3):
        keeper.keep()
        now[0] += timedelta(minutes=1)
    assert world.looks == 3
    assert sum("cannot be read" in said for said in listener.said) == 3


class EachNight(Ports):
    """Somebody takes the label off by day; at night one write sets it again."""

    def by_day(self) -> None:
        self.some = fleet(worker("worker-1", node=node("worker-1")))

    def send(self, request: Request) -> Answer:
        self.some = fleet(worker("worker-1", node=node("worker-1", labels=LABELLED)))
        return super().send(request)


def test_the_log_has_the_steps_of_every_night_not_only_of_the_first() -> None:
    now, log = [datetime(2026, 11, 18, 9, tzinfo=UTC)], io.StringIO()
    world = EachNight(fleet(), held_at=[])
    paper = SafeConsole()
    paper.file = log
    keeper = keeper_at(now, world, lambda: Lines(paper))
    for _ in range(3):
        world.by_day()
        keeper.keep()
        now[0] += timedelta(days=1)
    assert log.getvalue().count("worker-1 labelled") == 3


class Faulty:
    """Two timetables, of which the first cannot be looked at."""

    def shift_at(self, now: datetime) -> None:
        raise ZeroDivisionError("a fault of ours")

    next_start = shift_at
    name = "faulty"


def test_a_fault_in_one_timetable_is_said_with_its_place_and_holds_up_no_other() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, on=False)))
    keeper = keeper_at(now, world, listener, faulty=Faulty())
    keeper.keep()
    assert "ZeroDivisionError: a fault of ours (test_daemon.py:" in listener.said[0]
    assert world.looks == 1, "the other was looked at"
    assert keeper.next_start() is None
    assert "The start of the next shift is not known" in listener.said[-1]


def test_a_fault_in_the_middle_of_a_switch_is_said_with_its_place_and_tried_again_later() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, on=False)), fault=KeyError("a fault of ours"))
    keeper = keeper_at(now, world, listener)
    keeper.keep()
    assert any("KeyError" in said and "test_daemon.py:" in said for said in listener.said)
    assert listener.said[-1] == "Next try for day on t in 1 min."
