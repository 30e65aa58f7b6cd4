"""Virtual time of the simulated world: timers in order, and a clock that moves only when it is advanced."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

Action = Callable[[], None]


@dataclass(order=True, slots=True)
class Timer:
    """One action that is due at a later moment."""

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
        """Run `action` once, `delay_s` from now.

        Even without a delay it does not run at once: the caller finishes its own change first.
        """
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
        """Let time pass until `when_s`, and run what is due by then, in order."""
        while (due := self.next_due_s()) is not None and due <= when_s:
            timer = heapq.heappop(self._timers)
            self.now_s = max(self.now_s, timer.due_s)
            if timer.action:
                timer.action()
        self.now_s = max(self.now_s, when_s)


def do_nothing() -> None:
    """The action for a place that needs one and has nothing to do."""
