"""A controller's work queue: keys to reconcile, each once, after the present change is finished."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.store import Key

#: How long the scheduler and the controllers of workloads take to react: in a real cluster they are other programs.
REACTION_S = 0.01


class Queue:
    """Coalesces: a key that is added ten times before the queue runs is worked on once."""

    def __init__(self, clock: Clock, work: Callable[[Key], None], after_s: float = 0.0) -> None:
        self._clock = clock
        self._work = work
        self._after_s = after_s
        self._waiting: dict[Key, None] = {}

    def add(self, key: Key) -> None:
        # Decision 0015: without this, each of 128 evictions made the controllers count all pods again.
        if not self._waiting:
            self._clock.after(self._after_s, self._run)
        self._waiting[key] = None

    def _run(self) -> None:
        keys, self._waiting = self._waiting, {}
        for key in keys:
            self._work(key)
