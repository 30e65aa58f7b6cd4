"""A task's progress from 0 to 100 per cent: at a rate that may change, and held while something blocks it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vgpuctl.sim.clock import Clock, Timer

#: vSphere: where a task may hang.
ALMOST_DONE = 95
MARKS = (*range(10, 100, 10), ALMOST_DONE)
"""The percentages that a client may see."""
#: Decision 0015: ten reports for each of 128 suspends were most of the simulated vCenter's work.
#: How often a real vCenter reports is not known.
REPORT_EVERY_S = 1.0
"""The shortest time between two reports, except the last mark's: each report wakes every listener."""


class Progress:
    """Uses two timers at most, whatever its length: one for the next mark, one for the end."""

    def __init__(self, clock: Clock, length_s: float, reached: Callable[[], None], ended: Callable[[], None]) -> None:
        self.percent = 0
        self._clock = clock
        self._length_s = length_s or 1e-9
        self._reached = reached
        self._ended = ended
        self._rate = 1.0
        self._held = False
        self._done = 0.0
        self._since_s = self._reported_s = clock.now_s
        self._timers: list[Timer] = []
        self._plan()

    def set_rate(self, rate: float) -> None:
        self._account()
        self._rate = rate
        self._plan()

    def hold(self, held: bool) -> None:
        if held != self._held:
            self._account()
            self._held = held
            self._plan()

    @property
    def held(self) -> bool:
        return self._held

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def _account(self) -> None:
        """Add what was done at the rate until now."""
        if not self._held:
            self._done += (self._clock.now_s - self._since_s) * self._rate / self._length_s
        self._since_s = self._clock.now_s

    def _plan(self) -> None:
        self.stop()
        if not self._held:
            self._timers = [self._clock.after(self._seconds_to(1.0), self._ended)]
            self._plan_mark()

    def _plan_mark(self) -> None:
        soonest_s = self._reported_s + REPORT_EVERY_S - self._clock.now_s
        for mark in (mark for mark in MARKS if mark > self.percent):
            seconds = self._seconds_to(mark / 100)
            if seconds >= soonest_s or mark == ALMOST_DONE:
                self._timers[1:] = [self._clock.after(seconds, partial(self._at_mark, mark))]
                return

    def _at_mark(self, mark: int) -> None:
        self.percent, self._reported_s = mark, self._clock.now_s
        self._plan_mark()
        self._reached()

    def _seconds_to(self, part: float) -> float:
        return (part - self._done) * self._length_s / self._rate - (self._clock.now_s - self._since_s)


class SharedThroughput:
    """Progresses that share one throughput: each of n running ones has an n-th of it. A held one takes nothing."""

    def __init__(self) -> None:
        self._members: list[Progress] = []

    def join(self, progress: Progress) -> None:
        self._members.append(progress)
        self.divide()

    def leave(self, progress: Progress) -> None:
        self._members.remove(progress)
        self.divide()

    def divide(self) -> None:
        running = [progress for progress in self._members if not progress.held]
        for progress in running:
            progress.set_rate(1 / len(running))
