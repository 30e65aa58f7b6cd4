"""The real programs as processes: found or skipped, on free ports, their logs kept, and gone when the tests are."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def program(name: str) -> Path:
    """Where a built program is. Without it the tests that need it are skipped, and say so."""
    folder = Path(os.environ.get("PEERS_BIN", ROOT / ".peers" / "bin")).resolve()
    if not (folder / name).exists():
        pytest.skip(f"{name} is not built in {folder} (make test-peers builds it where Go is present)")
    return folder / name


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def until(found: Callable[[], Any], within_s: float = 30.0, *, what: str = "") -> Any:
    """Ask again and again until the answer is true; the one way in which these tests wait for a real program."""
    deadline = time.monotonic() + within_s
    while not (answer := found()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:.0f} s: {what or found.__qualname__}")
        time.sleep(0.05)
    return answer


class Process:
    """One program that runs until `end`, or until this process is no more, even by SIGKILL."""

    def __init__(self, name: str, *arguments: str, log: Path, env: dict[str, str] | None = None) -> None:
        self.name, self.log = name, log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [str(program(name)), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  # it makes one system call, and no lock is taken
            )

    def runs(self) -> bool:
        """False is never an answer here: what has ended too early is told with its last words."""
        code = self._process.poll()
        assert code is None, f"{self.name} ended with {code}:\n{self.log.read_text(errors='replace')[-2000:]}"
        return True

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def _end_with_parent() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
