"""The process's own output. It may be a closed pipe, a full disk or a terminal that is gone: never a traceback.

While a plan is carried out, output that fails is muted and the work goes on; other commands end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class GuardedOutput:
    """A text stream of this process. Once a write has failed, all that follows goes to the null device."""

    def __init__(self, stream: TextIO, *, mutes: bool = False) -> None:
        self._stream, self.mutes = stream, mutes
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        if text == "":
            # click writes nothing to see whether it may write, and ignores how that fails.
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
        """What Python still holds of the text is written there as well, and not once more at the end."""
        self.failure = self.failure or error
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)
        if not self.mutes:
            raise error

    def __getattr__(self, name: str) -> Any:
        """There is no way around it: click would write to the buffer of a stream that speaks ASCII."""
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)


def guard() -> None:
    """From now on. What an encoding cannot say is replaced; a stream that was closed is the null device."""
    sys.stdout = _guarded(sys.stdout, mutes=False)
    sys.stderr = _guarded(sys.stderr, mutes=True)


def _guarded(stream: TextIO | None, *, mutes: bool) -> Any:
    found = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if hasattr(found, "reconfigure"):
        found.reconfigure(errors="replace")
    return GuardedOutput(found, mutes=mutes)


@contextmanager
def muting() -> Iterator[None]:
    """Inside, output that fails is muted instead of raising."""
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
    """Why standard output is written no more; None while it is."""
    stream: Any = sys.stdout
    return stream.failure if isinstance(stream, GuardedOutput) else None


def complaint() -> str:
    """What a person should know of a failure; "" if there is none, or only a reader that has seen enough."""
    found = failure()
    if found is None or isinstance(found, BrokenPipeError):
        return ""
    return f"The output could not be written: {found.strerror or found}."
