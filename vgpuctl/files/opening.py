"""Reads any file that a person named: never more than allowed, and never with an endless wait."""

from __future__ import annotations

import os
import select
import stat
import time
from pathlib import Path

#: Three quarters of what a ConfigMap holds; this much YAML is read in less than a second.
MAX_BYTES = 768 * 1024
#: How long to wait for a pipe without a writer, or a device that sends nothing.
PATIENCE_S = 5.0
STDIN = "-"
_CHUNK = 1 << 16


class SilentError(OSError):
    """Nothing arrived within PATIENCE_S."""

    def __init__(self) -> None:
        super().__init__(None, f"no process has written into it for {PATIENCE_S:.0f} s")


def read_bounded(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the contents, or `most` bytes and one more if there are more. OSError if the file cannot be read.

    Symlinks are followed, because Kubernetes mounts ConfigMaps through them. `-` is the standard input.
    """
    if str(path) == STDIN:
        return _read(0, most)
    # POSIX: to open a pipe without a writer blocks, unless O_NONBLOCK is given.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        return _read(descriptor, most)
    finally:
        os.close(descriptor)


def _read(descriptor: int, most: int) -> bytes:
    """Read a descriptor. Wait without end only for a terminal, and for a pipe that a process holds open."""
    is_pipe, waits_forever = stat.S_ISFIFO(os.fstat(descriptor).st_mode), os.isatty(descriptor)
    data, hung_up, deadline_s = bytearray(), False, time.monotonic() + PATIENCE_S
    while len(data) <= most:
        chunk = _read_some(descriptor, min(_CHUNK, most + 1 - len(data)))
        waits_forever = waits_forever or (is_pipe and chunk is None)
        if chunk:
            data += chunk
        # POSIX: a pipe that no process has opened for writing yet reads as if it had ended.
        elif chunk is not None and (data or hung_up or not is_pipe):
            break
        elif not waits_forever and time.monotonic() >= deadline_s:
            raise SilentError
        else:
            hung_up = _wait(descriptor, None if waits_forever else deadline_s)
    return bytes(data)


def _read_some(descriptor: int, most: int) -> bytes | None:
    """Return b"" at the end, or for a pipe without a writer yet; None if more may come."""
    try:
        return os.read(descriptor, most)
    except BlockingIOError:
        return None


def _wait(descriptor: int, deadline_s: float | None) -> bool:
    """Wait for data or the deadline. True if the last process has closed the pipe."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    events = poll.poll(None if deadline_s is None else max(0.0, deadline_s - time.monotonic()) * 1000)
    return bool(events and events[0][1] & (select.POLLHUP | select.POLLERR))
