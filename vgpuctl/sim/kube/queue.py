"""How controllers learn of changes: keys to look at again, each once, when the present change is finished."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.store import Key


class Queue:
    """Coalesces: a key that is named ten times in one instant is worked on once."""

    def __init__(self, clock: Clock, work: Callable[[Key], None]) -> None:
        self._clock = clock
        self._work = work
        self._waiting: dict[Key, None] = {}

    def add(self, key: Key) -> None:
        if not self._waiting:
            self._clock.after(0, self._run)
        self._waiting[key] = None

    def _run(self) -> None:
        keys, self._waiting = self._waiting, {}
        for key in keys:
            self._work(key)
