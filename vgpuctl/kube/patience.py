"""A server that cannot answer just now is asked again, not before it wants to be."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from vgpuctl.model.errors import VgpuctlError

Thing = TypeVar("Thing")
PATIENCE_S = 15.0
#: How soon who waits notices that he is to stop.
NAP_S = 0.2


def patiently(
    attempt: Callable[[], Thing],
    pause_s: float,
    patience_s: float = PATIENCE_S,
    stop: Callable[[], bool] = lambda: False,
) -> Thing:
    """For so long in all, with at least such a pause before each time."""
    began = time.monotonic()
    while True:
        try:
            return attempt()
        except VgpuctlError as error:
            again_s = time.monotonic() + max(pause_s, error.after_s)
            if not error.passing or stop() or again_s - began > patience_s:
                raise
            rest_until(again_s, stop)


def rest_until(when_s: float, stop: Callable[[], bool]) -> None:
    """A moment of the monotonic clock, or until told to stop."""
    while (left_s := when_s - time.monotonic()) > 0 and not stop():
        time.sleep(min(left_s, NAP_S))
