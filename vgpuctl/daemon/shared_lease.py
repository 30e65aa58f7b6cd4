"""One acting Lease for all switches of this process, fenced by its leadership."""

from __future__ import annotations

import threading
from collections.abc import Callable

from vgpuctl.engine.ports import Lease


class SharedLease:
    """Taken with the first switch and released after the last one. Each switch has a share of it."""

    def __init__(self, make: Callable[[], Lease], leading: Callable[[], bool]) -> None:
        self._make, self.leading = make, leading
        self._lease: Lease | None = None
        self._users = 0
        self._lock = threading.Lock()
        self._said: set[str] = set()

    def share(self) -> Lease:
        """Return one switch's share, not taken yet."""
        return _Share(self)

    def asked(self) -> str:
        """Return which person asks to be let pass; "" if none does."""
        lease = self._lease
        return lease.asked() if lease is not None else ""

    def take(self, say: Callable[[str], None], stop: Callable[[], bool]) -> Lease:
        # Two switches that begin at once take it once: the second waits for the first here.
        with self._lock:
            if self._lease is None or self._lease.lost():
                lease = self._make()
                lease.acquire(lambda text: self._say_once(text, say), stop)
                self._lease, self._users = lease, 0
                self._said.clear()
            self._users += 1
            return self._lease

    def _say_once(self, text: str, say: Callable[[str], None]) -> None:
        """Say for which holder it waits once, and not at each try while a person is at work."""
        if text not in self._said:
            self._said.add(text)
            say(text)

    def give_back(self, lease: Lease) -> None:
        with self._lock:
            if lease is not self._lease:
                # It was lost, and another switch has taken a new one since.
                lease.release()
                return
            self._users -= 1
            if not self._users:
                self._lease = None
                lease.release()


class _Share:
    """Without leadership, the Lease counts as not held."""

    def __init__(self, shared: SharedLease) -> None:
        self._shared = shared
        self._lease: Lease | None = None

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        self._lease = self._shared.take(say, stop)

    def held(self) -> bool:
        return self._shared.leading() and self._lease is not None and self._lease.held()

    def lost(self) -> bool:
        return self._lease is not None and self._lease.lost()

    def asked(self) -> str:
        return self._lease.asked() if self._lease is not None else ""

    def release(self) -> None:
        if self._lease is not None:
            self._shared.give_back(self._lease)
            self._lease = None
