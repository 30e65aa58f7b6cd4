"""The daemon for one round, on trial, and on a worker: over the simulators, and round by round in virtual time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.daemons import wait_until
from tests.support.fleets import CATALOGUE, LABELLED, QUARTER, fleet, node, worker
from tests.support.lab import Lab
from tests.support.ports import Ports
from vgpuctl.basics.names import Names
from vgpuctl.daemon.once import code_after, recording
from vgpuctl.daemon.own_node import refuse_on_worker
from vgpuctl.daemon.trial import Trial
from vgpuctl.files import Files
from vgpuctl.model.errors import BusyError, ExitCode, UsageError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.timing import Timing
from vgpuctl.operations import Preview

NIGHT = 'timezone: UTC\nshifts:\n  day: {starts: "0 0 1 1 *", profiles: [v100-4q-4GB]}\n'
NIGHT = f'version: 1\n{NIGHT}  night: {{starts: "* * * * *", profiles: [v100-16q-16GB]}}\n'


SHIFTS = {
    "day": Shift("day", ("0 8 * * *",), workers=Names(("worker-1",))),
    "night": Shift("night", ("0 20 * * *",), timing=Timing(skip_after=timedelta(hours=2))),
}
FILES = Files(CATALOGUE, {"t": Timetable(name="t", timezone="UTC", shifts=SHIFTS)})


@pytest.fixture
def night(day: Lab) -> Iterator[Lab]:
    """By day, and it has just become night."""
    (day.folder / "schedules" / "day-night.yaml").write_text(NIGHT)
    yield day


def test_once_puts_the_shift_that_is_due_in_force_and_ends(night: Lab) -> None:
    done = night.vgpuctl("daemon", "--once").ok()
    assert night.awake() == {"worker-5"}
    assert "night on day-night begins." in done.out
    night.writes()
    night.vgpuctl("daemon", "--once").ok()
    assert night.writes() == {}, "the second round finds nothing to do"


@dataclass
class Busy(Ports):
    """Another instance acts."""

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        raise BusyError("another instance acts")


def test_once_records_how_each_switch_ended() -> None:
    codes: list[ExitCode] = []
    ports = Busy(fleet(), held_at=[])
    with pytest.raises(BusyError):
        recording(codes)(world=ports.world(), listener=ports).carry_out(
            lambda _: pytest.fail("the Lease is not held"), None
        )
    assert codes == [ExitCode.BUSY]


def test_once_ends_with_the_worst_that_is_left() -> None:
    night, day = datetime(2026, 11, 1, 21, tzinfo=UTC), datetime(2026, 11, 1, 9, tzinfo=UTC)
    awake = fleet(worker("worker-1", QUARTER, node=node("worker-1", labels=LABELLED)))
    assert code_after(awake, FILES, day, []) is ExitCode.DONE
    assert code_after(awake, FILES, night, []) is ExitCode.FAILED
    assert code_after(fleet(worker("worker-1", QUARTER, node=None)), FILES, night, []) is ExitCode.REFUSED
    assert code_after(awake, FILES, day, [ExitCode.DONE, ExitCode.WENT_BACK]) is ExitCode.WENT_BACK


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(night: Lab) -> None:
    night.writes()
    done = night.vgpuctl("daemon", "--once", "--dry-run").ok()
    assert "night on day-night would begin now. night: 4 workers go to sleep; 1 worker wakes" in done.out
    assert "Nothing is changed: this is a dry run." in done.out
    assert night.writes() == {}
    assert night.awake() == {f"worker-{number}" for number in range(1, 5)}


@pytest.mark.parametrize("words", [(), ("--once",), ("--dry-run",)])
def test_no_daemon_begins_on_a_worker(by_day: Lab, words: tuple[str, ...]) -> None:
    by_day.more_env = {"NODE_NAME": "worker-5"}
    done = by_day.vgpuctl("daemon", *words)
    assert done.code == 2
    assert "This daemon runs on worker-5, which is the worker worker-5" in done.err


def test_a_daemon_whose_node_becomes_a_worker_ends(day: Lab) -> None:
    profiles = day.folder / "profiles.yaml"
    everyone = profiles.read_text()
    without_5 = "".join(line for line in everyone.splitlines(keepends=True) if "worker-5" not in line)
    profiles.write_text(without_5)
    day.more_env = {"NODE_NAME": "worker-5"}
    log = day.folder / "daemon.log"
    with log.open("w") as out:
        daemon = day.start("daemon", "--dry-run", stdout=out, stderr=subprocess.STDOUT)
    wait_until(lambda: bool(log.read_text()))
    assert "This daemon runs on worker-5" not in log.read_text()
    profiles.write_text(everyone)
    daemon.wait(60)
    assert daemon.returncode == 2, log.read_text()
    assert "This daemon runs on worker-5" in log.read_text()


def test_only_the_node_of_a_worker_is_refused() -> None:
    some = fleet(worker("vm-1", QUARTER, node=node("node-1")))
    refuse_on_worker(lambda: some, {"NODE_NAME": "infra-1"})
    refuse_on_worker(lambda: some, {})
    with pytest.raises(UsageError, match="runs on node-1, which is the worker vm-1"):
        refuse_on_worker(lambda: some, {"NODE_NAME": "node-1"})


@dataclass
class Watching:
    """A world that stays by day, whatever the timetable says."""

    some: Fleet
    said: list[str] = field(default_factory=list)

    def observe(self, catalogue: Catalogue, *, scales: bool) -> None: ...

    def fleet(self) -> Fleet:
        return self.some

    def history(self) -> list[Entry]:
        return []


def says(preview: Preview) -> str:
    return preview.wish.name


def on_trial(world: Watching, now: list[datetime]) -> Trial:
    return Trial(lambda: FILES, world, world.said.append, says, lambda: now[0])


def test_a_month_on_trial_says_each_start_once_and_calls_none_of_them_missed() -> None:
    """The world stays by day. So each night would count as skipped two hours after its start."""
    world = Watching(fleet(worker("worker-1", QUARTER, node=node("worker-1", labels={CATALOGUE.label: "x"}))))
    now = [datetime(2026, 11, 1, 9, tzinfo=UTC)]
    trial = on_trial(world, now)
    for _ in range(30 * 24 * 6):
        trial.keep()
        now[0] += timedelta(minutes=10)
    begun = [text for text in world.said if text.startswith("night on t would begin now.")]
    assert len(begun) == 30
    assert not [text for text in world.said if "skipped" in text]


def test_it_wakes_at_the_next_start() -> None:
    world = Watching(fleet(worker("worker-1", QUARTER)))
    trial = on_trial(world, [datetime(2026, 11, 1, 9, tzinfo=UTC)])
    assert trial.next_moment() == datetime(2026, 11, 1, 20, tzinfo=UTC)
