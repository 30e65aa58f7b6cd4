"""Lets the world's time follow real time, stand still, or leap."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from vgpuctl.sim.clock import Clock

LONGEST_NAP_S = 3600.0


class Driver:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = asyncio.get_running_loop().time() - clock.now_s
        self.frozen = False

    def before(self, app: ASGIApp) -> ASGIApp:
        """The same server, but no request finds the world in the past."""

        async def punctual(scope: Scope, receive: Receive, send: Send) -> None:
            self._catch_up()
            await app(scope, receive, send)

        return punctual

    def freeze(self) -> None:
        self._catch_up()
        self.frozen = True

    def run(self) -> None:
        """From where it stands, as if no time had passed."""
        if self.frozen:
            self._began = self._real_s() - self._clock.now_s
            self.frozen = False
            self._clock.on_new_timer()

    def advance(self, seconds: float) -> None:
        """Everything that falls due on the way happens, in order."""
        self._catch_up()
        self._began -= seconds
        self._clock.advance_to(self._clock.now_s + seconds)

    async def drive(self) -> None:
        """Sleep until something is due, or something new is planned."""
        news = asyncio.Event()
        self._clock.on_new_timer = news.set
        while True:
            self._catch_up()
            news.clear()
            try:
                await asyncio.wait_for(news.wait(), timeout=self._nap_s())
            except TimeoutError:
                continue

    def _nap_s(self) -> float:
        due = self._clock.next_due_s()
        if due is None or self.frozen:
            return LONGEST_NAP_S
        return max(0.0, due - (self._real_s() - self._began))

    def _catch_up(self) -> None:
        if not self.frozen:
            self._clock.advance_to(self._real_s() - self._began)

    def _real_s(self) -> float:
        return asyncio.get_running_loop().time()
