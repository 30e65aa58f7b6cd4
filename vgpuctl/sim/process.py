"""Finds the process that serves a folder.

A process number alone proves nothing: after a process ended, another may get its number.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from vgpuctl.sim.control.client import call_control
from vgpuctl.sim.errors import SimError

PROC = Path("/proc")
_STATE, _STARTED = 0, 19


class NotProven(SimError):  # noqa: N818
    """A process has the number, and nothing proves or disproves that it serves the folder."""


def identity() -> dict[str, Any]:
    """Return what is recorded about the serving process, in a file that only its owner can read."""
    return {"pid": os.getpid(), "start": start_of(os.getpid())}


def serving_pid(folder: Path) -> int | None:
    """Return the process that serves this folder, None if there is none. Raise NotProven if that cannot be decided.

    The time of its start proves it, even while it is too busy to answer. Where the system does not report that time,
    the control is asked: only the serving process has the key of the folder's certificate.
    """
    pid = _pid_in_file(folder)
    if pid is None or has_ended(pid):
        return None
    recorded, start = _recorded_identity(folder), start_of(pid)
    if start is not None and recorded.get("pid") == pid and recorded.get("start") is not None:
        return pid if recorded["start"] == start else None
    with suppress(SimError):
        if call_control(folder, "GET", "process") == {"pid": pid}:
            return pid
    raise NotProven(
        f"Nothing proves that process {pid}, which {folder / 'pid'} names, serves this folder.",
        hint=f"See what it is: ps -p {pid}. If it is the simulators, kill {pid} ends them; if not, remove that file.",
    )


def has_ended(pid: int) -> bool:
    """Return True also for a process that only waits for its parent (a zombie), and for another user's process."""
    try:
        os.kill(pid, 0)
    except OSError:
        return True
    if PROC.exists():
        fields = _stat_fields(pid)
        return fields is None or fields[_STATE] == "Z"
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return False


def start_of(pid: int) -> str | None:
    """Return when the process started, in clock ticks since this boot. No later process with its number has the same
    value.
    """
    fields = _stat_fields(pid)
    if fields is None:
        return None
    try:
        boot = (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return None
    return f"{fields[_STARTED]} after boot {boot}"


def _stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat after the name, which may contain spaces and brackets."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _pid_in_file(folder: Path) -> int | None:
    try:
        pid = int((folder / "pid").read_text())
    except (OSError, ValueError):
        return None
    return pid if pid > 0 else None


def _recorded_identity(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "control.json").read_text())["process"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
