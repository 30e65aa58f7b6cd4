"""The servers' process inherits no secret, and nothing ends a process that is not proven to be it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lab import Lab
from tests.support.trap import LEADING, SECRET
from vgpuctl.sim import lifecycle, process
from vgpuctl.sim.errors import SimError
from vgpuctl.sim.folder import create_folder
from vgpuctl.sim.process import NotProven, has_ended, serving_pid, start_of


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user that has nothing to do with simulators. It must live on."""
    with subprocess.Popen(["sleep", "60"]) as alive:
        yield alive
        lives = alive.poll() is None
        alive.kill()
    assert lives, "it was ended"


@pytest.fixture
def no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, which does not say in files when a process started."""
    monkeypatch.setattr(process, "PROC", tmp_path / "none")


def claims(folder: Path, lab: Lab, number: int, **noted: object) -> Path:
    """A folder like the lab's, but for the process that it names."""
    folder.mkdir()
    for name in ("ca.pem", "control.json"):
        shutil.copy(lab.folder / name, folder / name)
    (folder / "pid").write_text(f"{number}\n")
    control = json.loads((folder / "control.json").read_text())
    (folder / "control.json").write_text(json.dumps(control | {"process": noted}))
    return folder


def test_a_number_that_was_left_to_another_process_is_no_server(
    by_day: Lab, stranger: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """The control answers, so the servers live; the number is not theirs."""
    folder = claims(tmp_path / "lab", by_day, stranger.pid, pid=stranger.pid, start="long ago")
    assert not lifecycle.stop(folder)


def test_a_number_of_which_nothing_is_noted_is_left_alone(
    by_day: Lab, stranger: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    folder = claims(tmp_path / "lab", by_day, stranger.pid)
    with pytest.raises(NotProven, match=f"Nothing proves that process {stranger.pid}"):
        lifecycle.stop(folder)
    assert (folder / "pid").exists()


@pytest.mark.usefixtures("no_proc")
def test_without_proc_the_control_proves_which_process_serves(
    by_day: Lab, stranger: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    server = int((by_day.folder / "pid").read_text())
    assert serving_pid(by_day.folder) == server
    folder = claims(tmp_path / "lab", by_day, stranger.pid, pid=stranger.pid, start=None)
    with pytest.raises(NotProven) as caught:
        lifecycle.stop(folder)
    assert f"ps -p {stranger.pid}" in str(caught.value.hint)


@pytest.mark.usefixtures("no_proc")
def test_without_proc_a_child_that_has_ended_is_known() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(child.pid)
    child.wait()


def test_a_process_that_has_ended_has_no_start() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert start_of(os.getpid()) == start_of(os.getpid()) is not None
    assert start_of(child.pid) is None


@pytest.mark.parametrize(("proven", "sent"), [(True, ["SIGTERM", "SIGKILL"]), (False, ["SIGTERM"])])
def test_before_it_kills_the_process_is_proven_anew(
    proven: bool, sent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, signals = iter([7, 7 if proven else None]), []
    monkeypatch.setattr(lifecycle, "serving_pid", lambda _: next(answers))
    monkeypatch.setattr(lifecycle, "has_ended", lambda _: False)
    monkeypatch.setattr(lifecycle, "END_WITHIN_S", 0.0)
    monkeypatch.setattr(os, "kill", lambda _, number: signals.append(signal.Signals(number).name))
    with pytest.raises(SimError, match="Process 7 does not end"):
        lifecycle.stop(tmp_path)
    assert signals == sent


def test_detached_servers_inherit_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LEADING | {"NEXT_TOOL_PASSWORD"}:
        monkeypatch.setenv(name, SECRET)
    folder = create_folder(tmp_path / "lab")
    pid = lifecycle.start_detached(folder, ["--instant"])
    try:
        assert SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        assert lifecycle.stop(folder)
    assert has_ended(pid)
