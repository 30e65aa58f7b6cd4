"""Whether the daemon is alive, and whether it is ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

#: A round comes at least once a minute, so after three minutes something hangs.
ALIVE_S = 180.0

Answer = dict[str, Any]


class Pulse:
    """When the loop's last round ended. Before the first one, logins may be waited for, at their own pace."""

    # Decision 0018: kubelet would start the daemon again after a refused login, and refused logins lock accounts.
    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._beat_s: float | None = None

    def beat(self) -> None:
        """Note that a round begins or ends."""
        self._beat_s = self._monotonic()

    @property
    def age_s(self) -> float | None:
        """How long ago the last round began or ended; None before the first."""
        return None if self._beat_s is None else self._monotonic() - self._beat_s

    def alive(self) -> Answer:
        age_s = self.age_s
        return {"alive": age_s is None or age_s < ALIVE_S, "lastRoundSeconds": None if age_s is None else round(age_s)}


class Leading(Protocol):
    def leading(self) -> bool: ...
    def standing_by(self) -> bool: ...


class Heard(Protocol):
    def silent_streams(self) -> dict[str, str]: ...


class Readiness:
    """Whether the daemon hears both servers, and leads or could take over at once."""

    def __init__(self) -> None:
        self._connection: Heard | None = None
        self._leadership: Leading | None = None

    def connect(self, connection: Heard, leadership: Leading) -> None:
        """Judge these from now on. Before, the daemon is not ready."""
        self._connection, self._leadership = connection, leadership

    @property
    def role(self) -> str | None:
        if self._leadership is None:
            return None
        if self._leadership.leading():
            return "leading"
        return "standing by" if self._leadership.standing_by() else None

    def ready(self) -> Answer:
        """Return whether it is ready, and what is missing. Reasons may name servers, so they are in the status."""
        missing, role = tuple(self._missing()), self.role
        missing += () if role or self._leadership is None else ("the daemon neither leads nor stands by",)
        return {"ready": not missing, "role": role, "missing": list(missing)}

    def _missing(self) -> Iterator[str]:
        if self._connection is None:
            yield "the first picture of vCenter and Kubernetes"
        else:
            yield from (f"{server} is not heard" for server in self._connection.silent_streams())
