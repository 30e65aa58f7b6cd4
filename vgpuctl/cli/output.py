"""The process's own output. Even a closed pipe, a full disk or a lost terminal never causes a traceback.

While a plan is carried out, output that fails is muted and the work goes on; other commands end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class GuardedOutput:
    """A text stream of this process. After a failed write, everything goes to the null device."""

    def __init__(self, stream: TextIO, *, mutes: bool = False) -> None:
        self._stream, self.mutes = stream, mutes
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        if text == "":
            # click writes an empty text to test the stream, and ignores any failure.
            return 0
        try:
            self._stream.write(text)
        except OSError as error:
            self._fail(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        """Redirect the stream to the null device.

        Python's buffered text goes there too, or it would fail again at the end.
        """
        self.failure = self.failure or error
        null = os.open(os.devnull, os.O_WRONLY)
        # The descriptor is replaced, not the object: Python flushes its own at exit.
        os.dup2(null, self._stream.fileno())
        os.close(null)
        if not self.mutes:
            raise error

    def __getattr__(self, name: str) -> Any:
        """Forward all but `buffer`: click would bypass this class with it on an ASCII stream."""
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)


def guard() -> None:
    """Guard both streams. A character that the encoding lacks is replaced; a closed stream becomes the null device."""
    sys.stdout = _guarded(sys.stdout, mutes=False)
    sys.stderr = _guarded(sys.stderr, mutes=True)


def _guarded(stream: TextIO | None, *, mutes: bool) -> Any:
    # Python: a standard stream that was closed before the start is None.
    found = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if hasattr(found, "reconfigure"):
        found.reconfigure(errors="replace")
    return GuardedOutput(found, mutes=mutes)


@contextmanager
def muting() -> Iterator[None]:
    """Mute output that fails inside, instead of raising."""
    stream: Any = sys.stdout
    if not isinstance(stream, GuardedOutput):
        yield
        return
    before, stream.mutes = stream.mutes, True
    try:
        yield
    finally:
        stream.mutes = before


def failure() -> OSError | None:
    """Return why standard output is no longer written; None while it is."""
    stream: Any = sys.stdout
    return stream.failure if isinstance(stream, GuardedOutput) else None


def complaint() -> str:
    """Return the message about a failed output; "" if nothing failed, or only the reader closed the pipe."""
    found = failure()
    # A reader such as `head` ends when it has seen enough.
    if found is None or isinstance(found, BrokenPipeError):
        return ""
    return f"The output could not be written: {found.strerror or found}."
