"""The few errors that reach a person: what happened, what to do, and how the process ends."""

from __future__ import annotations

import traceback
from enum import IntEnum
from pathlib import Path

#: How many characters of a server's or library's own reason are shown.
MOST_REASON = 160


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    WENT_BACK = 4
    UNREACHABLE = 5
    BUSY = 6
    INTERRUPTED = 130


class VgpuctlError(Exception):
    """An error for a person to read, never a traceback."""

    exit_code = ExitCode.FAILED
    #: Whether the same request may succeed when it is sent again later.
    passing = False
    #: How long the server asks us to wait before sending the same again.
    after_s = 0.0
    #: How often it may be sent in all, if even a passing reason is not waited for longer.
    patience: int | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(VgpuctlError):
    """The given words or files cannot be understood."""

    exit_code = ExitCode.USAGE


class RefusedError(VgpuctlError):
    """The wish cannot end well, and nothing was touched."""

    exit_code = ExitCode.REFUSED


class UnreachableError(VgpuctlError):
    """A server does not answer, or does not let us in."""

    exit_code = ExitCode.UNREACHABLE


class PassingError(UnreachableError):
    """A server does not answer just now; asking again may help."""

    passing = True


class BusyError(VgpuctlError):
    """Another instance is at work."""

    exit_code = ExitCode.BUSY


class StoppedError(VgpuctlError):
    """A person stopped the command before anything was taken or written."""

    exit_code = ExitCode.INTERRUPTED


class RequestFailedError(VgpuctlError):
    """A server refused one request."""


class TryAgainError(RequestFailedError):
    """A server refused one request for a passing reason: look again, then send it again."""

    passing = True


class ChangedMeanwhileError(TryAgainError):
    """The object has changed since the decision about it was made."""


class SeveralBudgetsError(TryAgainError):
    """Several disruption budgets cover the pod: it is never evicted until a person changes one."""

    # Kubernetes: the eviction API answers 500 for such a pod. A few tries rule out a passing 500.
    patience = 3


class BudgetError(TryAgainError):
    """A disruption budget does not allow this eviction now."""


def in_short(error: Exception) -> str:
    """Return in a few words why something failed, for any exception and any length of its text."""
    match error:
        case VgpuctlError():
            text = error.message
        case KeyError():
            text = f"it has no {error.args[0] if error.args else 'such key'}"
        case _:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    text = text.rstrip(".")
    return text if len(text) <= MOST_REASON else f"{text[:MOST_REASON]}…"


def with_place(error: BaseException) -> str:
    """Return an unforeseen error with the place where it was raised: `ValueError: … (lease.py:123)`."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
