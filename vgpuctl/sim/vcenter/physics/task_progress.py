"""How a task gets from 0 to 100 per cent: at a rate that may change, and held where something keeps it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vgpuctl.sim.clock import Clock, Timer
from vgpuctl.sim.vcenter.physics.records import ALMOST_DONE

MARKS = (*range(10, 100, 10), ALMOST_DONE)
"""The percentages that a client may see on the way."""
TOLD_EVERY_S = 1.0
"""How often at most, but for the last of them: each is news for everybody who listens."""


class Course:
    """Two timers at most, whatever its length: one for the next mark, one for the end."""

    def __init__(self, clock: Clock, length_s: float, reached: Callable[[], None], ended: Callable[[], None]) -> None:
        self.percent = 0
        self._clock = clock
        self._length_s = length_s or 1e-9
        self._reached = reached
        self._ended = ended
        self._rate = 1.0
        self._held = False
        self._share = 0.0
        self._since_s = self._told_s = clock.now_s
        self._timers: list[Timer] = []
        self._plan()

    def pace(self, rate: float) -> None:
        self._settle()
        self._rate = rate
        self._plan()

    def hold(self, held: bool) -> None:
        if held != self._held:
            self._settle()
            self._held = held
            self._plan()

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def _settle(self) -> None:
        """Note what has been done at the rate until now."""
        if not self._held:
            self._share += (self._clock.now_s - self._since_s) * self._rate / self._length_s
        self._since_s = self._clock.now_s

    def _plan(self) -> None:
        self.stop()
        if not self._held:
            self._timers = [self._clock.after(self._seconds_to(1.0), self._ended)]
            self._plan_mark()

    def _plan_mark(self) -> None:
        soonest_s = self._told_s + TOLD_EVERY_S - self._clock.now_s
        for mark in (mark for mark in MARKS if mark > self.percent):
            seconds = self._seconds_to(mark / 100)
            if seconds >= soonest_s or mark == ALMOST_DONE:
                self._timers[1:] = [self._clock.after(seconds, partial(self._at, mark))]
                return

    def _at(self, mark: int) -> None:
        self.percent, self._told_s = mark, self._clock.now_s
        self._plan_mark()
        self._reached()

    def _seconds_to(self, share: float) -> float:
        return (share - self._share) * self._length_s / self._rate - (self._clock.now_s - self._since_s)


class Lane:
    """Courses that share one throughput: with n of them on their way each has an n-th of it."""

    def __init__(self) -> None:
        self._courses: list[Course] = []

    def join(self, course: Course) -> None:
        self._courses.append(course)
        self._share_out()

    def leave(self, course: Course) -> None:
        self._courses.remove(course)
        self._share_out()

    def _share_out(self) -> None:
        for course in self._courses:
            course.pace(1 / len(self._courses))
