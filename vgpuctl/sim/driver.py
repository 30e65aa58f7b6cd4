"""Makes the world's time follow real time, stand still, or advance in one step."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from vgpuctl.sim.clock import Clock


class Driver:
    """Keeps one alarm in the event loop, for the timer that is due next."""

    def __init__(self, clock: Clock, *, frozen: bool = False) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time() - clock.now_s
        self._alarm: asyncio.TimerHandle | None = None
        self._advancing = False
        self.frozen = frozen

    def with_current_time(self, app: ASGIApp) -> ASGIApp:
        """Wrap an application so that the world catches up with real time before each request."""

        async def with_time(scope: Scope, receive: Receive, send: Send) -> None:
            self._catch_up()
            await app(scope, receive, send)

        return with_time

    def start(self) -> None:
        """Drive the clock from now on."""
        self._clock.on_new_timer = self._set_alarm
        self._set_alarm()

    def stop(self) -> None:
        """Stop the world's time for good."""
        self.frozen = True
        self._set_alarm()

    def freeze(self) -> None:
        self._catch_up()
        self.frozen = True
        self._set_alarm()

    def run(self) -> None:
        """Go on from where the clock stands, as if no real time had passed."""
        if self.frozen:
            self._began = self._loop.time() - self._clock.now_s
            self.frozen = False
            self._set_alarm()

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once. Everything due on the way happens, in order."""
        self._catch_up()
        self._began -= seconds
        self._advance_to(self._clock.now_s + seconds)

    def _catch_up(self) -> None:
        if not self.frozen:
            self._advance_to(self._loop.time() - self._began)

    def _advance_to(self, when_s: float) -> None:
        """Advance the clock, then set the alarm once for all timers that are new by then."""
        self._advancing = True
        try:
            self._clock.advance_to(when_s)
        finally:
            self._advancing = False
            self._set_alarm()

    def _set_alarm(self) -> None:
        # Decision 0015: the clock has one alarm, for the next due event.
        if self._advancing:
            return
        due_s = None if self.frozen else self._clock.next_due_s()
        when_s = None if due_s is None else self._began + due_s
        if self._alarm is not None:
            if self._alarm.when() == when_s:
                return
            self._alarm.cancel()
        self._alarm = None if when_s is None else self._loop.call_at(when_s, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._catch_up()
