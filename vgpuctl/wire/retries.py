"""Retries for a server that cannot answer just now, no sooner than it asks for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from vgpuctl.model.errors import VgpuctlError

Result = TypeVar("Result")
Stop = Callable[[], bool]
RETRY_WITHIN_S = 15.0
#: How soon a sleeping thread notices that it is to stop.
NAP_S = 0.2
#: The pauses of a stream that fails again and again.
#: Decision 0018: 1, 2, 4 … 30 s, the same for both servers.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
#: A stream that worked for so long before it failed again begins with the first pause.
LASTED_S = 60.0


def retry(
    attempt: Callable[[], Result],
    pause_s: float,
    within_s: float = RETRY_WITHIN_S,
    stop: Stop | None = None,
    on_failure: Callable[[VgpuctlError], None] = lambda _: None,
) -> Result:
    """Call `attempt` until it succeeds, for `within_s` in all, with at least `pause_s` before each retry.

    `on_failure` is called before each pause.
    """
    began_s = time.monotonic()
    while True:
        try:
            return attempt()
        except VgpuctlError as error:
            # Kubernetes: Retry-After says how long to wait (10 s for a budget whose status is stale).
            next_s = max(pause_s, error.after_s)
            if not error.passing or (stop and stop()) or time.monotonic() + next_s - began_s > within_s:
                raise
            on_failure(error)
            sleep(next_s, stop)


def sleep(duration_s: float, stop: Stop | None = None) -> None:
    """Sleep, or return early once `stop` returns True."""
    if stop is None:
        time.sleep(duration_s)
        return
    until_s = time.monotonic() + duration_s
    while (left_s := until_s - time.monotonic()) > 0 and not stop():
        time.sleep(min(left_s, NAP_S))


class GrowingPauses:
    """The pauses before a stream is begun again: 1, 2, 4 … 30 s."""

    def __init__(self) -> None:
        self._failures = 0

    def after_failure(self, worked_s: float, asked_s: float = 0.0) -> float:
        """Return the pause after a failure.

        `worked_s`: how long the stream had worked before. `asked_s`: the least pause that a server asked for.
        """
        self._failures = 1 if worked_s >= LASTED_S else self._failures + 1
        pause_s = min(FIRST_PAUSE_S * (1 << min(self._failures - 1, 10)), LONGEST_PAUSE_S)
        return max(pause_s, asked_s)
