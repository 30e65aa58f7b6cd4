"""Retries for a server that cannot answer just now, no sooner than it asks for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from vgpuctl.model.errors import VgpuctlError

Thing = TypeVar("Thing")
PATIENCE_S = 15.0
#: How soon a waiting thread notices that it is to stop.
NAP_S = 0.2


def patiently(
    attempt: Callable[[], Thing],
    pause_s: float,
    patience_s: float = PATIENCE_S,
    stop: Callable[[], bool] = lambda: False,
) -> Thing:
    """Call `attempt` until it succeeds, for `patience_s` in all, with at least `pause_s` before each retry."""
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
    """Sleep until a moment of the monotonic clock, or until `stop` returns True."""
    while (left_s := when_s - time.monotonic()) > 0 and not stop():
        time.sleep(min(left_s, NAP_S))
