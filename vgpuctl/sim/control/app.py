"""The control's HTTP server: JSON in, JSON out. Each request needs the token from the folder."""

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
from vgpuctl.sim.control.fault_rules import InvalidRequest
from vgpuctl.sim.people import NotDone
from vgpuctl.sim.vcenter.physics.refusals import Refusal

Document = dict[str, Any]
Handler = Callable[[Document], Document]


def control_app(control: ControlApi, token: str) -> Starlette:
    """Return the control as an ASGI application.

    Without the token it answers nothing but 401. The token is in a file that only the folder's owner can read.
    """

    def route(path: str, method: str, handler: Handler) -> Route:
        async def answer(request: Request) -> Response:
            return await _respond(request, token, handler)

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


async def _respond(request: Request, token: str, handler: Handler) -> Response:
    authorization = request.headers.get("authorization", "")
    # Decision 0006: a holder of the cluster's token must not be able to stop the clock.
    if not secrets.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
        return JSONResponse({"error": "not allowed"}, status_code=401)
    try:
        request_body = await _document(request.body)
        result = handler(request_body)
        await asyncio.sleep(0)  # a server that it starts again listens before the client has the reply
        return JSONResponse(result)
    except (InvalidRequest, NotDone, Refusal, TypeError, ValueError, KeyError) as error:
        return JSONResponse({"error": str(error)}, status_code=400)


async def _document(body: Callable[[], Awaitable[bytes]]) -> Document:
    text = await body()
    request_body = json.loads(text) if text else {}
    if not isinstance(request_body, dict):
        raise InvalidRequest("the body must be a JSON object")
    return request_body
