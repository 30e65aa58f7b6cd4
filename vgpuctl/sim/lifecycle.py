"""Starts the servers as a process of their own, finds them again, ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vgpuctl.sim.errors import SimError
from vgpuctl.sim.folder import new_file
from vgpuctl.sim.process import NotProven, ended, serving
from vgpuctl.sim.surroundings import needed

START_WITHIN_S = 30.0
END_WITHIN_S = 10.0
LOOK_EVERY_S = 0.02


def running_pid(folder: Path) -> int | None:
    """The process that serves this folder, if that is proven."""
    with suppress(NotProven):
        return serving(folder)
    return None


def refuse_second(folder: Path) -> None:
    if pid := running_pid(folder):
        raise SimError(f"{folder} is served already (process {pid}). End it with: vgpuctl sim down --dir {folder}")


def start_detached(folder: Path, arguments: list[str]) -> int:
    """Returns when both servers answer. They get nothing of our environment that could be a secret."""
    (folder / "pid").unlink(missing_ok=True)
    log = folder / "log"
    with os.fdopen(new_file(log, 0o600), "w") as out:
        process = subprocess.Popen(  # noqa: S603  # our own program, our own arguments
            # -P: no module is taken from the working folder.
            [sys.executable, "-P", "-m", "vgpuctl", "sim", "up", "--dir", str(folder), *arguments],
            env=needed(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    started = _comes_true(
        lambda: process.poll() is not None or ((folder / "pid").exists() and running_pid(folder)), START_WITHIN_S
    )
    if process.poll() is not None:
        raise SimError(f"The servers did not start:\n{log.read_text().strip()}")
    if not started:
        process.terminate()
        raise SimError(f"The servers did not start within {START_WITHIN_S:.0f} s; see {log}.")
    return process.pid


def stop(folder: Path) -> bool:
    """End the servers; False where none ran. A process that is not proven to be theirs is left alone."""
    pid = serving(folder)
    if pid is not None:
        _signal(pid, signal.SIGTERM)
        if not _comes_true(lambda: ended(pid), END_WITHIN_S):
            # Proven anew: by now the number may be another's.
            if serving(folder) == pid:
                _signal(pid, signal.SIGKILL)
            if not _comes_true(lambda: ended(pid), END_WITHIN_S):
                raise SimError(f"Process {pid} does not end.", hint=f"Look what it is: ps -p {pid}")
    (folder / "pid").unlink(missing_ok=True)
    return pid is not None


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _comes_true(condition: Callable[[], object], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True
