"""The daemon's files: a change counts once they stand still, and broken ones leave the last good ones in force."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.fleets import CATALOGUE, timetable
from vgpuctl.cli.acting.daemon import watched_files
from vgpuctl.daemon.watched_files import MOST_TRIES, WatchedFiles, fingerprints
from vgpuctl.files import Files, read_files
from vgpuctl.model.errors import UsageError
from vgpuctl.settings import Flags

PROFILES = "version: 1\nprofiles: {small: {vgpu: grid_v100-4q}}\nworkers: {w-1: small}\n"
TIMETABLE = 'version: 1\ntimezone: UTC\nshifts: {day: {starts: "0 8 * * *", profiles: [small]}}\n'
BROKEN = UsageError("p.yaml cannot be used:\n  line 3: a: is wrong\n  line 4: b: is wrong")


def files(*workers: str) -> Files:
    return Files(CATALOGUE, {"t": timetable(day=workers)})


@dataclass
class Disk:
    """Files that a test writes, and a clock. `writing`: what a program writes while the daemon waits."""

    content: Files | Exception = field(default_factory=lambda: files("w-1"))
    writing: Callable[[], None] = lambda: None
    stamp: int = 0
    reads: int = 0
    now: datetime = datetime(2026, 11, 18, 9, tzinfo=UTC)
    said: list[str] = field(default_factory=list)

    def watched(self) -> WatchedFiles:
        return WatchedFiles(lambda: self.stamp, self.read, self.said.append, lambda: self.now, lambda _: self.writing())

    def read(self) -> Files:
        self.reads += 1
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    def write(self, content: Files | Exception) -> None:
        self.stamp, self.content = self.stamp + 1, content

    def said_now(self) -> list[str]:
        said = self.said.copy()
        self.said.clear()
        return said


def test_a_change_is_seen_once_and_then_in_force() -> None:
    disk = Disk()
    watched = disk.watched()
    first = watched.current()
    assert (watched.changed(), disk.reads, disk.said_now()) == (False, 1, [])
    disk.write(files("w-2"))
    assert watched.changed()
    assert watched.current() == files("w-2")
    assert watched.current() is not first
    assert (watched.changed(), disk.reads) == (False, 2)
    assert disk.said_now() == ["The files have changed. In force now: t."]


def test_files_that_mean_the_same_stay_the_same_object() -> None:
    """The daemon ends its pauses after failures when it gets another object."""
    disk = Disk()
    watched = disk.watched()
    first = watched.current()
    disk.write(files("w-1"))
    assert watched.current() is first
    assert disk.said_now() == []


def test_broken_files_are_reported_line_by_line_and_the_last_good_ones_stay_in_force() -> None:
    disk = Disk()
    watched = disk.watched()
    disk.write(BROKEN)
    assert watched.current() == files("w-1")
    *faults, end = disk.said_now()
    assert faults == ["p.yaml cannot be used:", "  line 3: a: is wrong", "  line 4: b: is wrong"]
    assert end.startswith("The files of 2026-11-18 ")
    assert end.endswith(" stay in force.")
    disk.write(files("w-1"))
    assert watched.current() == files("w-1")
    assert disk.said_now() == ["The files are good again."]


def test_each_change_reports_its_faults_once_and_then_one_line_an_hour_reminds() -> None:
    disk = Disk()
    watched = disk.watched()
    disk.write(BROKEN)
    lines = []
    for _ in range(3 * 60):
        watched.current()
        lines.append(len(disk.said_now()))
        disk.now += timedelta(minutes=1)
    assert {minute: count for minute, count in enumerate(lines) if count} == {0: 4, 60: 1, 120: 1}
    disk.write(BROKEN)
    watched.current()
    assert len(disk.said_now()) == 4, "the same faults after another change"


def test_the_reminder_names_the_first_fault() -> None:
    disk = Disk()
    watched = disk.watched()
    disk.write(BROKEN)
    watched.current()
    disk.said_now()
    disk.now += timedelta(hours=1)
    watched.current()
    (reminder,) = disk.said_now()
    assert reminder.startswith("p.yaml cannot be used, still. The files of 2026-11-18 ")


@pytest.mark.parametrize("fault", [OSError(5, "Input/output error"), KeyError("a fault of ours")])
def test_a_fault_that_passes_without_a_change_is_noticed_within_a_minute(fault: Exception) -> None:
    """A network disk that failed for a moment leaves each file as it was."""
    disk = Disk()
    watched = disk.watched()
    disk.write(fault)
    assert watched.current() == files("w-1")
    said = disk.said_now()
    assert f"{type(fault).__name__}: " in said[0]
    assert "(test_watched_files.py:" in said[0]
    disk.content = files("w-2")
    disk.now += timedelta(seconds=59)
    watched.current()
    assert disk.reads == 2, "not at each look"
    disk.now += timedelta(seconds=1)
    assert watched.current() == files("w-2")
    assert disk.said_now()[0] == "The files are good again."


@pytest.mark.parametrize("half", [files("half"), BROKEN])
def test_a_file_that_is_half_written_is_never_in_force_and_no_fault(half: Files | Exception) -> None:
    """With half a timetable, workers would be put to sleep."""
    disk = Disk()
    watched = disk.watched()
    disk.write(half)
    rest = [half, files("w-2")]
    disk.writing = lambda: disk.write(rest.pop(0)) if rest else None
    assert watched.current() == files("w-2")
    assert disk.said_now() == ["The files have changed. In force now: t."]


def test_files_that_never_stand_still_are_reported_and_do_not_hold_up_the_daemon() -> None:
    disk = Disk()
    watched = disk.watched()
    disk.write(files("w-2"))
    disk.writing = lambda: disk.write(files("w-3"))
    assert watched.current() == files("w-1")
    assert disk.reads == 1 + MOST_TRIES
    assert "change again and again" in disk.said_now()[0]


def test_a_fault_in_looking_is_reported_and_the_files_stay_in_force() -> None:
    disk = Disk()
    broken = [False]

    def fingerprint() -> object:
        return 1 / 0 if broken[0] else 0

    watched = WatchedFiles(fingerprint, disk.read, disk.said.append, lambda: disk.now, lambda _: None)
    broken[0] = True
    assert watched.current() == files("w-1")
    assert "ZeroDivisionError" in disk.said_now()[0]


def test_at_the_start_broken_files_are_an_error() -> None:
    with pytest.raises(UsageError, match="line 3: a: is wrong"):
        Disk(content=BROKEN).watched()


def test_what_changes_during_the_first_reading_is_a_change() -> None:
    disk = Disk()

    def read() -> Files:
        found = disk.read()
        if disk.reads == 1:
            disk.write(files("w-2"))
        return found

    watched = WatchedFiles(lambda: disk.stamp, read, disk.said.append, lambda: disk.now, lambda _: None)
    assert watched.current() == files("w-2")


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A ConfigMap as kubelet mounts it, with a profiles file and a folder of timetables."""
    swap(tmp_path, 1)
    (tmp_path / "profiles.yaml").symlink_to("..data/profiles.yaml")
    (tmp_path / "schedules").symlink_to("..data/schedules")
    return tmp_path


def swap(mount: Path, version: int, profiles: str = PROFILES, **timetables: str) -> None:
    """Renew the mount as kubelet does: a new folder, and one link that is replaced by renaming."""
    folder = mount / f"..2026_{version}"
    (folder / "schedules").mkdir(parents=True)
    (folder / "profiles.yaml").write_text(profiles)
    for name, text in (timetables or {"t": TIMETABLE}).items():
        (folder / "schedules" / f"{name}.yaml").write_text(text)
    for path in folder.rglob("*.yaml"):
        os.utime(path, ns=(0, 0))
    (mount / "..data_tmp").symlink_to(folder.name)
    (mount / "..data_tmp").rename(mount / "..data")


def look(mount: Path) -> Callable[[], object]:
    return fingerprints(mount / "profiles.yaml", mount / "schedules")


def swap_alike(mount: Path) -> None:
    swap(mount, 2)


def copy_over_alike(mount: Path) -> None:
    """As `cp -p` does: the inode, the size and the time of change stay."""
    path = mount / "schedules" / "t.yaml"
    path.write_text(TIMETABLE.replace("0 8", "0 9"))
    os.utime(path, ns=(0, 0))


def another_timetable(mount: Path) -> None:
    (mount / "schedules" / "u.yaml").write_text(TIMETABLE)


def timetable_gone(mount: Path) -> None:
    (mount / "schedules" / "t.yaml").unlink()


def folder_gone(mount: Path) -> None:
    (mount / "schedules").unlink()


def profiles_gone(mount: Path) -> None:
    (mount / "profiles.yaml").unlink()


def link_broken(mount: Path) -> None:
    (mount / "..data").unlink()


CHANGES = [
    swap_alike,
    copy_over_alike,
    another_timetable,
    timetable_gone,
    folder_gone,
    profiles_gone,
    link_broken,
]


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_on_disk_is_seen(change: Callable[[Path], None], mounted: Path) -> None:
    fingerprint = look(mounted)
    before = fingerprint()
    read_files(mounted / "profiles.yaml", mounted / "schedules")
    (mounted / "schedules" / "notes.txt").write_text("no timetable")
    assert fingerprint() == before
    change(mounted)
    assert fingerprint() != before


def test_each_file_is_looked_at_behind_its_links(mounted: Path) -> None:
    """The links of a mounted file stay the same ones."""
    fingerprint = fingerprints(mounted / "profiles.yaml", mounted / "none")
    before = fingerprint()
    swap(mounted, 2)
    assert fingerprint() != before


def test_files_that_appear_are_seen(tmp_path: Path) -> None:
    (tmp_path / "profiles.yaml").write_text(PROFILES)
    fingerprint = look(tmp_path)
    seen = [fingerprint()]
    (tmp_path / "schedules").mkdir()
    seen.append(fingerprint())
    (tmp_path / "schedules" / "t.yaml").write_text(TIMETABLE)
    seen.append(fingerprint())
    assert len(set(seen)) == 3


def test_a_single_file_of_timetables_is_watched(tmp_path: Path) -> None:
    (tmp_path / "profiles.yaml").write_text(PROFILES)
    (tmp_path / "t.yaml").write_text(TIMETABLE)
    fingerprint = fingerprints(tmp_path / "profiles.yaml", tmp_path / "t.yaml")
    before = fingerprint()
    (tmp_path / "t.yaml").write_text(TIMETABLE * 2)
    assert fingerprint() != before


def test_profiles_from_a_pipe_are_read_once(tmp_path: Path) -> None:
    """A second reading would find it empty, or wait for a person at a terminal."""
    os.mkfifo(tmp_path / "profiles.yaml")
    fingerprint = look(tmp_path)
    before = fingerprint()
    (tmp_path / "schedules").mkdir()
    assert fingerprint() == before


def test_a_swapped_mount_is_read_anew_and_its_faults_are_those_of_profiles_check(mounted: Path) -> None:
    profiles, schedules = mounted / "profiles.yaml", mounted / "schedules"
    said: list[str] = []
    watched = WatchedFiles(
        fingerprints(profiles, schedules), lambda: read_files(profiles, schedules), said.append, sleep=lambda _: None
    )
    swap(mounted, 2, t=TIMETABLE, u=TIMETABLE.replace("profiles: [small]", "profils: []"))
    assert set(watched.current().timetables) == {"t"}
    with pytest.raises(UsageError) as checked:
        read_files(profiles, schedules)
    assert said[:-1] == checked.value.message.splitlines()
    assert f"{schedules}/u.yaml cannot be used:" in said
    swap(mounted, 3, t=TIMETABLE, v=TIMETABLE.replace("[small]", "[]").replace("profiles", "workers"))
    assert set(watched.current().timetables) == {"t", "v"}
    (mounted / "..data" / "schedules" / "v.yaml").touch()
    before = watched.current()
    assert watched.current() is before


def test_a_named_folder_of_timetables_that_vanishes_is_a_fault_as_at_the_start(tmp_path: Path) -> None:
    """Without it there would be no timetable, and the daemon would stop switching without a word."""
    (tmp_path / "profiles.yaml").write_text(PROFILES)
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "t.yaml").write_text(TIMETABLE)
    said: list[str] = []
    watched = watched_files(Flags(profiles=tmp_path / "profiles.yaml", schedules=tmp_path / "schedules"), said.append)
    (tmp_path / "schedules").rename(tmp_path / "elsewhere")
    assert set(watched.current().timetables) == {"t"}
    assert said[0] == f"The folder of timetables, {tmp_path / 'schedules'}, does not exist."
