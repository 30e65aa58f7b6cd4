"""The daemon: the shift of the hour, through the same operation as `switch`."""

from __future__ import annotations

import signal
import subprocess
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.support.fleets import CATALOGUE, LABELLED, QUARTER, fleet, node, worker
from tests.support.lab import BIN, Lab
from vgpuctl.daemon.keeper import Keeper
from vgpuctl.engine.ports import World
from vgpuctl.files import Files
from vgpuctl.model.errors import PassingError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.names import Names
from vgpuctl.model.timetable import Shift, Timetable


def test_it_brings_the_shift_of_the_hour_and_keeps_it(lab: Lab) -> None:
    lab.vgpuctl("provision", "--yes").ok()
    lab.vgpuctl("label-nodes").ok()
    schedule = lab.folder / "schedules" / "day-night.yaml"
    schedule.write_text(schedule.read_text().replace("0 20 * * *", "* * * * *"))
    daemon = subprocess.Popen(
        [str(BIN / "vgpuctl"), "daemon"], env=lab.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
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

    def fleet(self) -> Fleet:
        self.looks += 1
        return self.some

    def world(self) -> World:
        raise PassingError("the Lease cannot be read")


def keeper_at(now: list[datetime], world: Broken, listener: Telling) -> Keeper:
    shifts = {
        "day": Shift("day", ("0 8 * * *",), workers=Names(("worker-1",))),
        "night": Shift("night", ("0 20 * * *",)),
    }
    timetable = Timetable(name="t", timezone="UTC", shifts=shifts)
    return Keeper(Files(CATALOGUE, {"t": timetable}), world, listener, lambda: now[0])  # type: ignore[arg-type]


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
