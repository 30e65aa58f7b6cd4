"""Starts the servers as a process of their own, finds them again, ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from vgpuctl.sim.errors import SimError
from vgpuctl.sim.remote import ask
from vgpuctl.sim.surroundings import needed

START_WITHIN_S = 30.0
END_WITHIN_S = 10.0


def running_pid(folder: Path) -> int | None:
    """The process that serves this folder: a number alone may be another's by now."""
    try:
        pid = int((folder / "pid").read_text())
        os.kill(pid, 0)
        if not _named_after(folder, pid):
            ask(folder, "GET", "clock")
    except (OSError, ValueError, SimError):
        return None
    return pid


def _named_after(folder: Path, pid: int) -> bool:
    """Its own words tell it, even while it is too busy to answer, or stopped."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"vgpuctl" in words and str(folder).encode() in words


def refuse_second(folder: Path) -> None:
    if pid := running_pid(folder):
        raise SimError(f"{folder} is served already (process {pid}). End it with: vgpuctl sim down --dir {folder}")


def start_detached(folder: Path, arguments: list[str]) -> int:
    """Returns when both servers answer. They get nothing of our environment that could be a secret."""
    (folder / "pid").unlink(missing_ok=True)
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(  # noqa: S603  # our own program, our own arguments
            # -P: no module is taken from the working folder.
            [sys.executable, "-P", "-m", "vgpuctl", "sim", "up", "--dir", str(folder), *arguments],
            env=needed(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SimError(f"The servers did not start:\n{log.read_text().strip()}")
        if (folder / "pid").exists() and running_pid(folder):
            return process.pid
        time.sleep(0.05)
    process.terminate()
    raise SimError(f"The servers did not start within {START_WITHIN_S:.0f} s; see {log}.")


def stop(folder: Path) -> bool:
    """End the servers; False where none ran."""
    pid = running_pid(folder)
    if pid is None:
        (folder / "pid").unlink(missing_ok=True)
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + END_WITHIN_S
    while _alive(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    (folder / "pid").unlink(missing_ok=True)
    return True


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
