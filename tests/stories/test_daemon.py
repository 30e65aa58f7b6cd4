"""The daemon: the shift of the hour, through the same operation as `switch`."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleets import CATALOGUE, LABELLED, QUARTER, fleet, node, with_node, worker
from tests.support.lab import Lab
from tests.support.ports import Ports
from vgpuctl.basics.names import Names
from vgpuctl.cli.acting.progress import Lines
from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.daemon.hooks import Hooks
from vgpuctl.daemon.reports import said_at_start
from vgpuctl.daemon.schedule_loop import ScheduleLoop
from vgpuctl.engine.ports import Answer, Lease, LedgerStore, World
from vgpuctl.engine.runner import Listener
from vgpuctl.files import Files
from vgpuctl.model.errors import BusyError, PassingError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry
from vgpuctl.model.notice import Notice
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.requests import PatchNode, Request
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


def test_what_it_serves_is_what_status_says_and_asks_nothing_of_vcenter(day: Lab, tmp_path: Path) -> None:
    """It is paused, so nothing moves between the two looks."""
    day.vgpuctl("pause").ok()
    log = tmp_path / "log"
    with log.open("w") as out:
        daemon = day.start("daemon", "--listen", "0", stdout=out, stderr=subprocess.STDOUT)
    wait_until(lambda: "Listening on http://127.0.0.1:" in log.read_text())
    port = int(log.read_text().partition("127.0.0.1:")[2].partition(".")[0])
    assert served(port, "/healthz")[0] == 200
    wait_until(lambda: served(port, "/readyz") == (200, {"ready": True, "role": "leading", "missing": []}))
    day.settle()
    wait_until(lambda: "vgpuctl_leading 1.0" in served(port, "/metrics")[1])
    day.calls()
    shown = [served(port, "/status.json") for _ in range(20)]
    assert [status for status, _ in shown] == [200] * 20
    assert day.calls().get("vcenter", {}).keys() <= {"WaitForUpdatesEx"}
    document = shown[-1][1]
    said = day.json("vgpuctl", "status")
    assert {**said, "observedAt": "", "quotas": None} == {**document, "observedAt": ""}
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(10) == 0


def served(port: int, path: str) -> tuple[int, Any]:
    """A reply of the daemon's own server: its status, and its document or text."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    reply = connection.getresponse()
    body = reply.read().decode()
    return reply.status, json.loads(body) if body.startswith("{") else body


@dataclass
class Mount:
    """The daemon's files as ConfigMaps: kubelet renews each by a new folder and one link that it replaces."""

    folder: Path
    versions: int = 0

    def swap(self, name: str, files: dict[str, str]) -> Path:
        self.versions += 1
        new = self.folder / name / f"..2026_{self.versions}"
        new.mkdir(parents=True)
        for file, text in files.items():
            (new / file).write_text(text)
            if not (self.folder / name / file).is_symlink():
                (self.folder / name / file).symlink_to(f"..data/{file}")
        (self.folder / name / "..data_tmp").symlink_to(new.name)
        (self.folder / name / "..data_tmp").rename(self.folder / name / "..data")
        return self.folder / name


NIGHT = """\
version: 1
timezone: UTC
shifts:
  day: {starts: "0 0 1 1 *", profiles: [v100-4q-4GB]}
  night: {starts: "* * * * *", profiles: [v100-16q-16GB]}
"""
ALL_DAY = NIGHT.replace("* * * * *", "0 0 1 1 *").replace("0 0 1 1 *", "* * * * *", 1)


def test_mounted_files_that_change_count_within_seconds_and_broken_ones_do_not(day: Lab, tmp_path: Path) -> None:
    """One login for all of it, although the new files name a worker that the former ones do not."""
    mount, log = Mount(tmp_path), tmp_path / "log"
    everyone = (day.folder / "profiles.yaml").read_text()
    without_5 = "".join(line for line in everyone.splitlines(keepends=True) if "worker-5" not in line)
    profiles = mount.swap("profiles", {"profiles.yaml": without_5}) / "profiles.yaml"
    schedules = mount.swap("schedules", {"day-night.yaml": ALL_DAY})
    day.calls()
    with log.open("w") as out:
        places = ("--profiles", str(profiles), "--schedules", str(schedules))
        daemon = day.start("daemon", *places, stdout=out, stderr=subprocess.STDOUT)
    wait_until(lambda: "It is day on day-night" in log.read_text())
    mount.swap("schedules", {"day-night.yaml": NIGHT.replace("starts", "start")})
    wait_until(lambda: "stay in force" in log.read_text())
    mount.swap("profiles", {"profiles.yaml": everyone})
    mount.swap("schedules", {"day-night.yaml": NIGHT})
    wait_until(lambda: "It is night on day-night" in log.read_text())
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(30) == 0
    assert "day-night.yaml cannot be used:" in log.read_text()
    assert "The files are good again." in log.read_text()
    assert day.calls()["vcenter"]["Login"] == 1
    assert day.awake() == {"worker-5"}


def wait_until(true: object) -> None:
    deadline = time.monotonic() + 30
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


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

    def observe(self, catalogue: Catalogue, *, scales: bool) -> None: ...

    def fleet(self) -> Fleet:
        self.looks += 1
        return self.some

    def world(self) -> World:
        raise self.fault

    def acting_lease(self, *, gives_way: bool) -> Lease:
        raise self.fault

    def history(self) -> list[Entry]:
        return []

    def announce(self, found: Sequence[Notice]) -> None: ...

    @property
    def ledger(self) -> LedgerStore:
        return Ports(self.some, held_at=[])


def at_once(now: Callable[[], datetime]) -> Hooks:
    """Switches run in the loop's own thread: a round ends with them."""
    return Hooks(now=now, start=lambda work: work())


def keeper_at(
    now: list[datetime], connection: Any, listener: Telling | Callable[[], Listener], **more: Any
) -> ScheduleLoop:
    shifts = {
        "day": Shift("day", ("0 8 * * *",), workers=Names(("worker-1",))),
        "night": Shift("night", ("0 20 * * *",)),
    }
    timetable = Timetable(name="t", timezone="UTC", shifts=shifts)
    listening = listener if callable(listener) else lambda: listener
    files = Files(CATALOGUE, {**more, "t": timetable})
    return ScheduleLoop(lambda: files, connection, listening, at_once(lambda: now[0]))


def files(*names: str, label: str = CATALOGUE.label) -> Files:
    """Timetables of one worker each: awake by day, asleep at night."""
    tables = {}
    for number, name in enumerate(names, start=1):
        day = Shift("day", ("0 8 * * *",), workers=Names((f"worker-{number}",)))
        tables[name] = Timetable(
            name=name, timezone="UTC", shifts={"day": day, "night": Shift("night", ("0 20 * * *",))}
        )
    return Files(replace(CATALOGUE, label=label), tables)


def test_it_says_at_its_start_what_it_keeps_and_what_comes_next() -> None:
    assert list(said_at_start(files("a"), BY_DAY.astimezone())) == [f"Keeps a. Next: night at {clock(20)}."]
    assert list(said_at_start(files(), BY_DAY)) == ["There is no timetable: nothing is kept until there is one."]


def clock(hour: int) -> str:
    """This hour of the timetables' zone, as this machine's clocks show it."""
    return BY_DAY.replace(hour=hour).astimezone().strftime("%H:%M")


def test_a_shift_that_stands_is_left_alone() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    awake = worker("worker-1", node=node("worker-1", labels=LABELLED))
    keeper_at(now, Broken(fleet(awake)), listener).keep()
    assert listener.said == []


def test_what_is_refused_is_said_once_and_begins_as_soon_as_nothing_refuses_it() -> None:
    """A running worker without a node cannot be put to sleep. Looking costs nothing, so every round looks."""
    now, listener = [datetime(2026, 11, 18, 21, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, node=None)))
    keeper = keeper_at(now, world, listener)
    for _ in range(120):
        keeper.keep()
        now[0] += timedelta(minutes=1)
    assert world.looks == 120
    assert [("no Kubernetes node" in said) for said in listener.said] == [True]
    world.some = fleet(worker("worker-1", QUARTER))
    keeper.keep()
    assert listener.said[1] == "t: the Lease cannot be read", "it would begin"


def test_a_fault_is_waited_out_longer_and_longer_and_a_start_ends_the_wait() -> None:
    now, listener = [datetime(2026, 11, 18, 18, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, on=False)), fault=KeyError("a fault of ours"))
    keeper = keeper_at(now, world, listener)
    tried = []
    for minute in range(121):
        before = world.looks
        keeper.keep()
        if world.looks > before:
            tried.append(minute)
        now[0] += timedelta(minutes=1)
    assert tried == [0, 1, 3, 7, 15, 31, 61, 91, 120]


def test_a_server_that_is_away_is_asked_again_without_a_pause() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, on=False)))
    keeper = keeper_at(now, world, listener)
    for _ in range(3):
        keeper.keep()
        now[0] += timedelta(minutes=1)
    assert world.looks == 3
    assert sum("cannot be read" in said for said in listener.said) == 1, "it is said once"


class Daemons(Ports):
    """What the daemon's loop needs of a connection beside the ports."""

    def observe(self, catalogue: Catalogue, *, scales: bool) -> None: ...

    def acting_lease(self, *, gives_way: bool) -> Lease:
        assert gives_way
        return self

    def history(self) -> list[Entry]:
        return []

    @property
    def ledger(self) -> LedgerStore:
        return self


class AtWork(Daemons):
    """A person's command holds the Lease. `tried`: how often it was wanted."""

    tried = 0

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        self.tried += 1
        raise BusyError("anna is at work", hint="wait")


def test_a_switch_that_finds_a_person_at_work_is_tried_again_within_seconds_and_says_so_once() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    world = AtWork(fleet(worker("worker-1", node=node("worker-1"))), held_at=[])
    keeper, tried = keeper_at(now, world, listener), []
    for _ in range(6):
        keeper.keep()
        tried.append(world.tried)
        now[0] += timedelta(seconds=1)
    assert tried == [1, 1, 2, 2, 3, 3]
    keeper.keep()
    assert keeper.next_moment() == now[0] + timedelta(seconds=2), "the alarm rings for it"
    assert listener.said == ["t: anna is at work"]


class EachNight(Daemons):
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

    @property
    def timezone(self) -> str:
        raise ZeroDivisionError("a fault of ours")

    announce = timedelta(hours=1)
    name = "faulty"
    scales = False


def test_a_fault_in_one_timetable_is_said_with_its_place_and_holds_up_no_other() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, on=False)))
    keeper = keeper_at(now, world, listener, faulty=Faulty())
    keeper.keep()
    assert "ZeroDivisionError: a fault of ours (test_daemon.py:" in listener.said[0]
    assert world.looks == 2, "both were looked at"
    assert keeper.next_moment() is None
    assert "The start of the next shift is not known" in listener.said[-1]


def test_a_fault_in_the_middle_of_a_switch_is_said_with_its_place_and_tried_again_later() -> None:
    now, listener = [datetime(2026, 11, 18, 9, tzinfo=UTC)], Telling()
    world = Broken(fleet(worker("worker-1", QUARTER, on=False)), fault=KeyError("a fault of ours"))
    keeper = keeper_at(now, world, listener)
    keeper.keep()
    assert any("KeyError" in said and "test_daemon.py:" in said for said in listener.said)
    assert listener.said[-1].endswith("Next try in 1 min.")


@dataclass
class Changing(Daemons):
    """A world over files that people change. `meanwhile`: what they do while a switch runs."""

    files: Files = field(default_factory=lambda: files("t"))
    observed: list[str] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    deaf: bool = False
    fault: Exception | None = None

    def world(self) -> World:
        if self.fault:
            raise self.fault
        return super().world()

    def observe(self, catalogue: Catalogue, *, scales: bool) -> None:
        self.observed.append(catalogue.label)
        if self.deaf:
            raise PassingError("vCenter cannot be heard: it is busy.")

    def refresh(self) -> None:
        super().refresh()
        self.meanwhile()

    def send(self, request: Request) -> Answer:
        assert isinstance(request, PatchNode)
        now = self.some.workers[request.node]
        assert now.node is not None
        set_now = {key: value for key, value in request.labels.items() if value is not None}
        self.some = with_node(self.some, now.name, labels={**now.node.labels, **set_now})
        return super().send(request)

    def keeper(self, now: datetime) -> tuple[ScheduleLoop, Telling]:
        listener = Telling()
        return ScheduleLoop(lambda: self.files, self, lambda: listener, at_once(lambda: now)), listener

    def labels(self) -> list[set[str]]:
        """The labels that each write has set."""
        return [set(request.labels) for request in self.sent if isinstance(request, PatchNode)]


BY_DAY, AT_NIGHT = datetime(2026, 11, 18, 9, tzinfo=UTC), datetime(2026, 11, 18, 21, tzinfo=UTC)


def test_new_files_count_at_the_next_round_and_end_the_pause_after_a_failure() -> None:
    world = Changing(fleet(worker("worker-1", QUARTER)), held_at=[], fault=KeyError("a fault of ours"))
    keeper, listener = world.keeper(AT_NIGHT)
    keeper.keep()
    keeper.keep()
    assert len(world.observed) == 1, "the same files: the pause lasts"
    world.files = files("t", label="other")
    keeper.keep()
    assert world.observed == [CATALOGUE.label, "other"]
    assert sum(said.endswith("Next try in 1 min.") for said in listener.said) == 2
    world.files = files()
    keeper.keep()
    assert len(world.observed) == 2, "a timetable that vanished is not kept"
    assert keeper.next_moment() is None


def test_a_switch_ends_with_the_files_with_which_it_began_and_the_next_round_has_the_new_ones() -> None:
    world = Changing(fleet(worker("worker-1", node=node("worker-1"))), held_at=[])
    later = files("t", label="other")
    world.meanwhile = lambda: setattr(world, "files", later)
    keeper, listener = world.keeper(BY_DAY)
    keeper.keep()
    first, second = world.labels()
    assert CATALOGUE.label in first
    assert "other" not in first
    assert "other" in second
    assert world.observed == [CATALOGUE.label, "other"]
    assert sum("It is day on t" in said for said in listener.said) == 2


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (("t", "u"), ("t", "u"), ["worker-1", "worker-2"]),
        (("t", "u"), ("t",), ["worker-1"]),
        (("t",), ("t", "u"), ["worker-1", "worker-2"]),
    ],
)
def test_timetables_that_vanish_or_appear_while_another_one_is_kept_count_at_once(
    before: tuple[str, ...], after: tuple[str, ...], kept: list[str]
) -> None:
    unlabelled = fleet(worker("worker-1", node=node("worker-1")), worker("worker-2", node=node("worker-2")))
    world, later = Changing(unlabelled, held_at=[], files=files(*before)), files(*after)
    world.meanwhile = lambda: setattr(world, "files", later)
    world.keeper(BY_DAY)[0].keep()
    assert [request.node for request in world.sent if isinstance(request, PatchNode)] == kept


def test_until_the_servers_show_what_new_files_ask_for_nothing_is_decided() -> None:
    world = Changing(fleet(worker("worker-1", node=node("worker-1"))), held_at=[], deaf=True)
    keeper, listener = world.keeper(BY_DAY)
    keeper.keep()
    assert (world.sent, listener.said) == ([], ["t: vCenter cannot be heard: it is busy."])
    world.deaf = False
    keeper.keep()
    assert len(world.sent) == 1
