"""A stream is never blind unawares: whatever ends it, it says so and why, and begins anew."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from xml.parsers.expat import ExpatError

import pytest

from vgpuctl.model.errors import PassingError, UsageError
from vgpuctl.wire import retries
from vgpuctl.wire.follower import Follower

WITHIN_S = 10.0


class Scripted(Follower):
    """Each look raises what is next, or is a moment in which nothing changes."""

    def __init__(self, *ends: Exception | None) -> None:
        self.changes: list[tuple[bool, str]] = []
        self.changed = threading.Event()
        super().__init__(f"scripted-{id(self)}", self._note)
        self._ends = list(ends)
        self.looks = 0

    def _listen(self) -> None:
        self.looks += 1
        if not self.heard:
            self._mark_heard()
            self._on_change()
        end = self._ends.pop(0) if self._ends else None
        if end is not None:
            raise end
        self._closed.wait(0.01)

    def _note(self) -> None:
        self.changes.append((self.heard, self.silence))
        self.changed.set()


def until(done: Callable[[], Any]) -> None:
    ends_s = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < ends_s
        time.sleep(0.002)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.001)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (PassingError("the watch broke."), "the watch broke"),
        (UsageError("The password file x cannot be read."), "The password file x cannot be read"),
        (ExpatError("unclosed token"), "ExpatError: unclosed token"),
        (ValueError("1k"), "ValueError: 1k"),
        (KeyError("resourceVersion"), "it has no resourceVersion"),
        (RecursionError(), "RecursionError"),
        (AttributeError("x" * 1000), f"AttributeError: {'x' * 144}…"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_whatever_ends_it_it_is_not_heard_and_says_why_and_is_heard_again(end: Exception, why: str) -> None:
    stream = Scripted(end)
    stream.follow()
    until(lambda: len(stream.changes) == 3)
    stream.close()
    assert stream.changes == [(True, ""), (False, why), (True, "")]


@pytest.mark.usefixtures("quick")
def test_a_listener_that_fails_ends_no_stream() -> None:
    stream = Scripted(PassingError("one"), PassingError("two"))

    def fails() -> None:
        raise ZeroDivisionError

    stream._on_change = fails
    stream.follow()
    until(lambda: stream.looks > 5)
    stream.close()


def test_closing_ends_a_pause_at_once() -> None:
    """A server may ask for a long one."""
    end = PassingError("busy")
    end.after_s = 1000.0
    stream = Scripted(end)
    stream.follow()
    until(lambda: stream.silence)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == stream._name)
    stream.close()
    thread.join(WITHIN_S)
    assert (thread.is_alive(), stream.looks) == (False, 1)
