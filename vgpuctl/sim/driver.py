"""Lets the world's time follow real time, stand still, or leap."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from vgpuctl.sim.clock import Clock


class Driver:
    """One alarm at a time, for the event that is due next."""

    def __init__(self, clock: Clock, *, frozen: bool = False) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time() - clock.now_s
        self._alarm: asyncio.TimerHandle | None = None
        self._advancing = False
        self.frozen = frozen

    def before(self, app: ASGIApp) -> ASGIApp:
        """The same server, but no request finds the world in the past."""

        async def punctual(scope: Scope, receive: Receive, send: Send) -> None:
            self._catch_up()
            await app(scope, receive, send)

        return punctual

    def drive(self) -> None:
        """From now on."""
        self._clock.on_new_timer = self._set_alarm
        self._set_alarm()

    def end(self) -> None:
        """The world moves no more."""
        self.frozen = True
        self._set_alarm()

    def freeze(self) -> None:
        self._catch_up()
        self.frozen = True
        self._set_alarm()

    def run(self) -> None:
        """From where it stands, as if no time had passed."""
        if self.frozen:
            self._began = self._loop.time() - self._clock.now_s
            self.frozen = False
            self._set_alarm()

    def advance(self, seconds: float) -> None:
        """Everything that falls due on the way happens, in order."""
        self._catch_up()
        self._began -= seconds
        self._advance_to(self._clock.now_s + seconds)

    def _catch_up(self) -> None:
        if not self.frozen:
            self._advance_to(self._loop.time() - self._began)

    def _advance_to(self, when_s: float) -> None:
        """The alarm is set once for all timers that are new by then."""
        self._advancing = True
        try:
            self._clock.advance_to(when_s)
        finally:
            self._advancing = False
            self._set_alarm()

    def _set_alarm(self) -> None:
        if self._advancing:
            return
        due_s = None if self.frozen else self._clock.next_due_s()
        when_s = None if due_s is None else self._began + due_s
        if self._alarm is not None:
            if self._alarm.when() == when_s:
                return
            self._alarm.cancel()
        self._alarm = None if when_s is None else self._loop.call_at(when_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._catch_up()
