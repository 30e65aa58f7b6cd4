"""When a refused login may be tried again.

By default vCenter locks an account after five refusals within three minutes. We use four and leave one to people.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

#: vsphere.local, default policy: five failed logins within 180 s lock an account.
MOST = 4
WITHIN_S = 180.0
#: Decision 0018: afterwards once every five minutes, each time with the password as it is then.
PAUSE_S = 300.0


def next_try(now_s: float, refusals: Sequence[float]) -> float:
    """Return the moment of the next allowed login. `refusals`: the moments of the refusals that count."""
    return max(now_s, refusals[-1] + PAUSE_S) if len(refusals) >= MOST else now_s


class Throttle:
    """Counts the refused logins of one account: those since the last login, and those that vCenter still counts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refusals: tuple[float, ...] = ()

    def wait_s(self) -> float:
        now_s = self._clock()
        return next_try(now_s, self._refusals) - now_s

    def refused(self) -> None:
        self._refusals = (*self._refusals, self._clock())[-MOST:]

    def accepted(self) -> None:
        since_s = self._clock() - WITHIN_S
        self._refusals = tuple(moment_s for moment_s in self._refusals if moment_s > since_s)
