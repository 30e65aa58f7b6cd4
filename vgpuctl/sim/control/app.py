"""The control's own small server: JSON in, JSON out, for whoever holds the folder's token."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vgpuctl.sim.control.control_api import ControlApi
from vgpuctl.sim.control.rules import NotUnderstood
from vgpuctl.sim.people import NotDone
from vgpuctl.sim.vcenter.physics.refusals import Refusal

Document = dict[str, Any]
Deed = Callable[[Document], Document]


def control_app(control: ControlApi, token: str) -> Starlette:
    """Nobody without the token learns anything: it lies in a file that only the folder's owner can read."""

    def route(path: str, method: str, deed: Deed) -> Route:
        async def answer(request: Request) -> Response:
            return await _answered(request, token, deed)

        return Route(f"/{path}", answer, methods=[method], name=f"{method} {path}")

    return Starlette(
        routes=[
            route("process", "GET", control.process),
            route("world", "DELETE", control.reset),
            route("calls", "GET", control.calls),
            route("calls", "DELETE", control.reset_calls),
            route("faults", "GET", control.faults),
            route("faults", "POST", control.add_fault),
            route("faults", "DELETE", control.clear_faults),
            route("clock", "GET", control.clock),
            route("clock", "POST", control.set_clock),
            route("durations", "GET", control.durations),
            route("durations", "POST", control.set_durations),
            route("person", "POST", control.send_person),
            route("vm", "POST", control.set_vm),
            route("host", "POST", control.set_host),
        ]
    )


async def _answered(request: Request, token: str, deed: Deed) -> Response:
    given = request.headers.get("authorization", "")
    if not secrets.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return JSONResponse({"error": "not allowed"}, status_code=401)
    try:
        asked = await _document(request.body)
        done = deed(asked)
        await asyncio.sleep(0)  # a door that it opens is open when its answer arrives
        return JSONResponse(done)
    except (NotUnderstood, NotDone, Refusal, TypeError, ValueError, KeyError) as error:
        return JSONResponse({"error": str(error)}, status_code=400)


async def _document(body: Callable[[], Awaitable[bytes]]) -> Document:
    text = await body()
    asked = json.loads(text) if text else {}
    if not isinstance(asked, dict):
        raise NotUnderstood("a mapping is expected")
    return asked
