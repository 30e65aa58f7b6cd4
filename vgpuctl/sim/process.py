"""Which process serves a folder. A number alone proves nothing: a process that ended may have left it to another."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from vgpuctl.sim.errors import SimError
from vgpuctl.sim.remote import ask

PROC = Path("/proc")
_STATE, _STARTED = 0, 19


class NotProven(SimError):  # noqa: N818
    """A process has the number, and nothing says whether it serves the folder."""


def identity() -> dict[str, Any]:
    """What is written down of the process that serves, where only its owner can read it."""
    return {"pid": os.getpid(), "start": start_of(os.getpid())}


def serving(folder: Path) -> int | None:
    """The process that serves this folder, None if there is none. Raises NotProven if a process may be it or not.

    Its start proves it, even while it is too busy to answer. Where the system does not say when a process started, the
    control is asked: only the process that we know has the key of the folder's certificate.
    """
    pid = _written(folder)
    if pid is None or ended(pid):
        return None
    noted, start = _noted(folder), start_of(pid)
    if start is not None and noted.get("pid") == pid and noted.get("start") is not None:
        return pid if noted["start"] == start else None
    with suppress(SimError):
        if ask(folder, "GET", "process") == {"pid": pid}:
            return pid
    raise NotProven(
        f"Nothing proves that process {pid}, which {folder / 'pid'} names, serves this folder.",
        hint=f"See what it is: ps -p {pid}. Simulators end with kill {pid}; if it is something else, remove that file.",
    )


def ended(pid: int) -> bool:
    """Also true of one that only waits for its parent to ask how it ended, and of another user's: it is not ours."""
    try:
        os.kill(pid, 0)
    except OSError:
        return True
    if PROC.exists():
        fields = _fields(pid)
        return fields is None or fields[_STATE] == "Z"
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return False


def start_of(pid: int) -> str | None:
    """When it started: ticks of the clock since this boot. No later process with its number has the same."""
    fields = _fields(pid)
    if fields is None:
        return None
    try:
        boot = (PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return None
    return f"{fields[_STARTED]} after boot {boot}"


def _fields(pid: int) -> list[str] | None:
    """Of the system's line about it, what follows its name, which may hold spaces and brackets."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _written(folder: Path) -> int | None:
    try:
        pid = int((folder / "pid").read_text())
    except (OSError, ValueError):
        return None
    return pid if pid > 0 else None


def _noted(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "control.json").read_text())["process"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
