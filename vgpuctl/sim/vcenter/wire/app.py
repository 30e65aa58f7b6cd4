"""The simulated vCenter over HTTP."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.fault_effects import apply_effect
from vgpuctl.sim.faults import Effect
from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.wire import bodies, faults, requests, service
from vgpuctl.sim.vcenter.wire.api import Answer, Api, Caller
from vgpuctl.sim.vcenter.wire.metadata import NEWEST, version_of
from vgpuctl.sim.vcenter.wire.serialiser import fault_response
from vgpuctl.sim.vcenter.wire.sessions import COOKIE
from vgpuctl.sim.vcenter.wire.vmomi import vmodl

_XML = 'text/xml; charset="utf-8"'
_log = logging.getLogger(__name__)


def vcenter_app(center: Center, calls: Calls) -> Starlette:
    """vCenter's API as an ASGI application. It runs in the event loop that also drives the world's clock."""
    endpoint = _Endpoint(Api(center, calls.count))
    return Starlette(
        routes=[
            Route("/sdk", endpoint.soap, methods=["POST"]),
            Route("/sdk/", endpoint.soap, methods=["POST"]),
            # Measured: pyVmomi's SmartConnect reads the versions here before it logs in.
            Route("/sdk/vimServiceVersions.xml", _versions),
        ]
    )


class _Endpoint:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def soap(self, http: HttpRequest) -> Response:
        return await _with_errors_as_faults(self._handle(http), NEWEST)

    async def _handle(self, http: HttpRequest) -> Response:
        """Read and count the request, then answer it or let a fault take effect."""
        caller = _caller(http)
        request = requests.parse(await bodies.read(http))
        effect = self._api.effect_on(request)
        answer = partial(self._answer_with_errors, http, request, caller, effect)
        return await (apply_effect(effect, self._api.clock, answer) if effect else answer())

    async def _answer_with_errors(
        self, http: HttpRequest, request: requests.Request, caller: Caller, effect: Effect | None
    ) -> Response:
        return await _with_errors_as_faults(self._answer(http, request, caller, effect), caller.version)

    async def _answer(
        self, http: HttpRequest, request: requests.Request, caller: Caller, effect: Effect | None
    ) -> Response:
        answer = self._api.answer(request, caller, effect)
        if inspect.isawaitable(answer.result):
            # A wait for updates may last longer than an idle session does, so it counts as activity (inferred).
            with answer.call.center.sessions.answering(answer.call.required_session):
                answer.result = await _while_connected(http, answer.result)
        return _response(http, answer)


def _caller(http: HttpRequest) -> Caller:
    return Caller(
        cookie=http.cookies.get(COOKIE),
        version=version_of(http.headers.get("soapaction", "")),
        address=http.client.host if http.client else "",
        agent=http.headers.get("user-agent", ""),
    )


async def _with_errors_as_faults(answer: Awaitable[Response], version: Any) -> Response:
    """Return the response, or a fault for any exception. A client never gets a traceback."""
    try:
        return await answer
    except vmodl.MethodFault as fault:
        return _fault_response(fault, version)
    except requests.UnknownMethod as unknown:
        return _fault_response(faults.method_not_found(str(unknown)), version)
    except requests.BadRequest as bad:
        return bodies.close_if_too_large(_fault_response(faults.invalid_request(str(bad)), version), bad)
    except Exception as error:
        _log.exception("the simulated vCenter could not answer")
        return _fault_response(
            vmodl.fault.SystemError(msg=f"A general system error occurred: {error}", reason=str(error))
        )


async def _versions(http: HttpRequest) -> Response:
    return Response(service.versions_xml(), media_type=_XML)


def _response(http: HttpRequest, answer: Answer) -> Response:
    response, session = Response(answer.soap(), media_type=_XML), answer.call.session
    # vSphere: a session is a cookie. pyVmomi sends the whole Set-Cookie value back as its Cookie (measured).
    if answer.request.method == "Login" and session:
        response.set_cookie(COOKIE, session.key, path="/", httponly=True, secure=http.url.scheme == "https")
    return response


def _fault_response(fault: Any, version: Any = NEWEST) -> Response:
    # SOAP: a fault is sent with status 500. vcsim 0.56 does so as well (measured).
    return Response(fault_response(fault, version), status_code=500, media_type=_XML)


async def _while_connected(http: HttpRequest, result: Any) -> Any:
    """Wait for the result, until the client disconnects."""
    waiting = asyncio.ensure_future(result)
    gone = asyncio.ensure_future(_wait_for_disconnect(http))
    try:
        await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
        # A client that is gone must not keep a wait, and with it its session, alive.
        return await waiting if waiting.done() else None
    finally:
        waiting.cancel()
        gone.cancel()


async def _wait_for_disconnect(http: HttpRequest) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass
