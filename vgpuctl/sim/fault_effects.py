"""Carries out a fault's effect on one HTTP request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.faults import Effect, How

_ABORT = "vgpuctl.hang_up"
Answer = Callable[[], Awaitable[Response]]


class AbortedConnection(Response):
    """A response that ends the connection without an answer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        abort_connections = scope.get(_ABORT)
        if abort_connections is None:
            raise ConnectionAbortedError("the connection is cut")
        abort_connections()
        await asyncio.sleep(0)  # uvicorn sees the closed connection before it looks for our answer


def with_abort(app: ASGIApp) -> ASGIApp:
    """Wrap an application so that `AbortedConnection` can end its connection.

    ASGI has no way to end a connection without an answer. uvicorn keeps the transport in the object behind `send`.
    """

    async def outermost(scope: Scope, receive: Receive, send: Send) -> None:
        # Decision 0006: one function uses the transport behind uvicorn's `send`.
        cycle = getattr(send, "__self__", None)
        if cycle is not None:
            scope[_ABORT] = cycle.transport.abort
        await app(scope, receive, send)

    return outermost


async def apply_effect(effect: Effect, clock: Clock, answer: Answer) -> Response:
    """Carry out the effects that do not depend on the protocol. Each server has its own code for the others."""
    if effect.how in (How.CUT, How.DOWN):
        return AbortedConnection()
    if effect.how is How.HANG:
        await _sleep(clock, effect.seconds)
    # A lost reply: the server does its work, and only the client does not hear of it.
    response = await answer()
    return AbortedConnection() if effect.how is How.LOSE_REPLY else response


async def _sleep(clock: Clock, seconds: float) -> None:
    """Wait for simulated seconds. While the clock is frozen, the wait goes on."""
    elapsed = asyncio.Event()
    timer = clock.after(seconds, elapsed.set)
    try:
        await elapsed.wait()
    finally:
        timer.cancel()
