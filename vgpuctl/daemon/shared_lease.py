"""One acting Lease for all switches of this process, fenced by its leadership."""

from __future__ import annotations

import threading
from collections.abc import Callable

from vgpuctl.engine.ports import Lease


class SharedLease:
    """Taken with the first switch and released after the last one. Without leadership it counts as not held."""

    def __init__(self, make: Callable[[], Lease], leading: Callable[[], bool]) -> None:
        self._make, self._leading = make, leading
        self._lease: Lease | None = None
        self._users = 0
        self._lock = threading.Lock()

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        # Two switches that begin at once take it once: the second waits for the first here.
        with self._lock:
            if self._lease is None or self._lease.lost():
                lease = self._make()
                lease.acquire(say, stop)
                self._lease, self._users = lease, 0
            self._users += 1

    def held(self) -> bool:
        return self._leading() and self._lease is not None and self._lease.held()

    def lost(self) -> bool:
        return self._lease is not None and self._lease.lost()

    def asked(self) -> str:
        """Return which person asks to be let pass; "" if none does."""
        return self._lease.asked() if self._lease is not None else ""

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._lease is not None:
                lease, self._lease = self._lease, None
                lease.release()
