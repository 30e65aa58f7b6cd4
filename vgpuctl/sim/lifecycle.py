"""Starts the servers as a process of their own, finds that process again, and ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vgpuctl.sim.environment import needed_variables
from vgpuctl.sim.errors import SimError
from vgpuctl.sim.folder import new_file
from vgpuctl.sim.process import NotProven, has_ended, serving_pid

START_WITHIN_S = 30.0
END_WITHIN_S = 10.0
POLL_S = 0.02


def running_pid(folder: Path) -> int | None:
    """Return the process that serves this folder, if that is proven."""
    with suppress(NotProven):
        return serving_pid(folder)
    return None


def refuse_second(folder: Path) -> None:
    if pid := running_pid(folder):
        raise SimError(
            f"Simulators already run in {folder} (process {pid}). End them with: vgpuctl sim down --dir {folder}"
        )


def start_detached(folder: Path, arguments: list[str]) -> int:
    """Start the servers and return when they answer.

    The process gets no variable of our environment that could hold a secret.
    """
    (folder / "pid").unlink(missing_ok=True)
    log = folder / "log"
    with os.fdopen(new_file(log, 0o600), "w") as out:
        process = subprocess.Popen(  # noqa: S603  # our own program, our own arguments
            # -P: Python takes no module from the working folder.
            [sys.executable, "-P", "-m", "vgpuctl", "sim", "up", "--dir", str(folder), *arguments],
            # Decision 0016: an allow-list, because a list of forbidden variables would be wrong with the next tool's.
            env=needed_variables(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    started = _wait_until(
        lambda: process.poll() is not None or ((folder / "pid").exists() and running_pid(folder)), START_WITHIN_S
    )
    if process.poll() is not None:
        raise SimError(f"The servers did not start:\n{log.read_text().strip()}")
    if not started:
        process.terminate()
        raise SimError(f"The servers did not start within {START_WITHIN_S:.0f} s; see {log}.")
    return process.pid


def stop(folder: Path) -> bool:
    """End the servers; return False if none ran. A process that is not proven to be theirs is left alone."""
    pid = serving_pid(folder)
    if pid is not None:
        _signal(pid, signal.SIGTERM)
        if not _wait_until(lambda: has_ended(pid), END_WITHIN_S):
            # Look again: by now the number may belong to another process.
            if serving_pid(folder) == pid:
                _signal(pid, signal.SIGKILL)
            if not _wait_until(lambda: has_ended(pid), END_WITHIN_S):
                raise SimError(f"Process {pid} does not end.", hint=f"See what it is: ps -p {pid}")
    (folder / "pid").unlink(missing_ok=True)
    return pid is not None


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait_until(condition: Callable[[], object], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
