"""`vgpuctl` as a process that was forked instead of started: what `Popen` and `run` give, for a fifth of the cost."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.support.paths import ROOT
from tests.support.zygote import receive, send

READY_WITHIN_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`vgpuctl WORD …` and where it runs. `first`: a module, a function and its arguments, called there before."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: Path | None = None
    first: Sequence[str] = ()

    def document(self) -> dict[str, Any]:
        cwd = str(self.cwd) if self.cwd else ""
        return {"argv": ["vgpuctl", *self.words], "env": dict(self.env), "cwd": cwd, "first": list(self.first)}


class Zygote:
    """One for each process of the tests. It ends when its channel closes, that is with the process that asked."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        words = [sys.executable, "-m", "tests.support.zygote", str(theirs.fileno())]
        env = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LC_ALL", "VIRTUAL_ENV"}}
        self._process = subprocess.Popen(words, cwd=ROOT, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self._lock = threading.RLock()
        self._ended: dict[int, int] = {}
        self._channel.settimeout(READY_WITHIN_S)
        receive(self._channel)

    def fork(self, command: Command, streams: tuple[int, int, int]) -> int:
        with self._lock:
            send(self._channel, command.document(), streams)
            while True:
                message = self._heard(READY_WITHIN_S)
                if message and "pid" in message:
                    # The system gives a number out again: what had it before has ended.
                    self._ended.pop(int(message["pid"]), None)
                    return int(message["pid"])

    def code(self, pid: int, timeout_s: float) -> int | None:
        """How this process ended; None if it has not within this time."""
        until = time.monotonic() + timeout_s
        with self._lock:
            while pid not in self._ended:
                left_s = until - time.monotonic()
                if self._heard(max(left_s, 0.0)) is None and left_s <= 0:
                    return None
            return self._ended[pid]

    def _heard(self, timeout_s: float) -> dict[str, Any] | None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                return None
        found = receive(self._channel)
        if found is None:
            raise RuntimeError("the process that forks commands has ended")
        message, _ = found
        if "ended" in message:
            self._ended[int(message["ended"])] = int(message["code"])
        return message


@cache
def zygote() -> Zygote:
    return Zygote()


class Forked:
    """A running `vgpuctl WORD …`. `stdout`, `stderr`: as for Popen, a file, a descriptor, PIPE or DEVNULL."""

    def __init__(self, command: Command, *, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        self.stdout, out = _reader(stdout, null)
        self.stderr, err = (None, out) if stderr == subprocess.STDOUT else _reader(stderr, null)
        self.command, self.returncode = command, None
        try:
            self.pid = zygote().fork(command, (null, out, err))
        finally:
            os.close(null)
            for given, number in ((stdout, out), (stderr, err)):
                if given == subprocess.PIPE:
                    os.close(number)

    returncode: int | None
    stdout: IO[str] | None
    stderr: IO[str] | None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = zygote().code(self.pid, 0.0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        found = zygote().code(self.pid, timeout) if self.returncode is None else self.returncode
        if found is None:
            raise subprocess.TimeoutExpired(list(self.command.words), timeout)
        self.returncode = found
        return found

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """All that it still writes, and its end."""
        until = time.monotonic() + timeout
        pipes = [pipe for pipe in (self.stdout, self.stderr) if pipe is not None]
        found = dict.fromkeys(pipes, "")
        readers = [threading.Thread(target=_read_into, args=(found, pipe), daemon=True) for pipe in pipes]
        for reader in readers:
            reader.start()
        try:
            self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        for reader in readers:
            reader.join(max(until - time.monotonic(), 1.0))
        return tuple(found[pipe] if pipe else "" for pipe in (self.stdout, self.stderr))  # type: ignore[return-value]

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        """Never left behind."""
        if self.poll() is None:
            self.kill()
            self.wait(READY_WITHIN_S)
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()


def run(command: Command, timeout: float, **streams: Any) -> tuple[int, str, str]:
    """Its exit code and what it wrote."""
    with Forked(command, **streams) as process:
        out, err = process.communicate(timeout)
        assert process.returncode is not None
        return process.returncode, out, err


def _read_into(found: dict[IO[str], str], pipe: IO[str]) -> None:
    found[pipe] = pipe.read()


def _reader(given: Any, null: int) -> tuple[IO[str] | None, int]:
    """What we read of it, and the descriptor that it writes to."""
    if given == subprocess.PIPE:
        read, write = os.pipe()
        return os.fdopen(read, encoding="utf-8"), write
    if given == subprocess.DEVNULL:
        return None, null
    return None, given if isinstance(given, int) else given.fileno()
