"""Time in the simulated world: events in order, moved on by whoever drives the clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

Action = Callable[[], None]


@dataclass(order=True, slots=True)
class Timer:
    """One event to come."""

    due_s: float
    order: int
    action: Action | None = field(compare=False)

    def cancel(self) -> None:
        self.action = None


class Clock:
    """Virtual seconds since the world began. Nothing in the world reads any other clock."""

    def __init__(self, began: datetime) -> None:
        self.began = began.astimezone(UTC)
        self.now_s = 0.0
        self._order = 0
        self._timers: list[Timer] = []
        self.on_new_timer: Action = do_nothing

    def utc(self) -> datetime:
        return self.began + timedelta(seconds=self.now_s)

    def after(self, delay_s: float, action: Action) -> Timer:
        """Run `action` once, `delay_s` from now; never at once, so that a caller finishes its own change first."""
        self._order += 1
        timer = Timer(self.now_s + max(0.0, delay_s), self._order, action)
        heapq.heappush(self._timers, timer)
        self.on_new_timer()
        return timer

    def next_due_s(self) -> float | None:
        while self._timers and self._timers[0].action is None:
            heapq.heappop(self._timers)
        return self._timers[0].due_s if self._timers else None

    def advance_to(self, when_s: float) -> None:
        """Let time come to `when_s`, running what falls due on the way, in order."""
        while (due := self.next_due_s()) is not None and due <= when_s:
            timer = heapq.heappop(self._timers)
            self.now_s = max(self.now_s, timer.due_s)
            if timer.action:
                timer.action()
        self.now_s = max(self.now_s, when_s)


def do_nothing() -> None:
    """The action where none is wanted."""
