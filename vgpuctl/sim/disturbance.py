"""Carries a fault's effect out on one HTTP request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.faults import Effect, How

_HANG_UP = "vgpuctl.hang_up"
Answer = Callable[[], Awaitable[Response]]


class HungUp(Response):
    """No answer: the connection ends instead."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hang_up = scope.get(_HANG_UP)
        if hang_up is None:
            raise ConnectionAbortedError("the connection is cut")
        hang_up()
        await asyncio.sleep(0)  # the server notices before it looks for our answer


def able_to_hang_up(app: ASGIApp) -> ASGIApp:
    """uvicorn keeps the connection beside its `send`; nothing in ASGI ends it without an answer."""

    async def outermost(scope: Scope, receive: Receive, send: Send) -> None:
        cycle = getattr(send, "__self__", None)
        if cycle is not None:
            scope[_HANG_UP] = cycle.transport.abort
        await app(scope, receive, send)

    return outermost


async def disturbed(effect: Effect, clock: Clock, answer: Answer) -> Response:
    """The effects that need no word of the protocol; the others are the servers' own."""
    if effect.how in (How.CUT, How.DOWN):
        return HungUp()
    if effect.how is How.HANG:
        await _passed(clock, effect.seconds)
    answered = await answer()
    return HungUp() if effect.how is How.LOSE_REPLY else answered


async def _passed(clock: Clock, seconds: float) -> None:
    """Simulated seconds: while the clock is frozen, what hangs goes on hanging."""
    over = asyncio.Event()
    timer = clock.after(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
