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
    """vCenter's API as an ASGI application. Run it in the loop that also drives the world's clock."""
    endpoint = _Endpoint(Api(center, calls.count))
    return Starlette(
        routes=[
            Route("/sdk", endpoint.soap, methods=["POST"]),
            Route("/sdk/", endpoint.soap, methods=["POST"]),
            Route("/sdk/vimServiceVersions.xml", _versions),
        ]
    )


class _Endpoint:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def soap(self, http: HttpRequest) -> Response:
        return await _explained(self._meet(http), NEWEST)

    async def _meet(self, http: HttpRequest) -> Response:
        """The request is read, counted, and answered unless a fault meets it."""
        caller = _caller(http)
        request = requests.parse(await bodies.read(http))
        effect = self._api.effect_on(request)
        answer = partial(self._explained_answer, http, request, caller, effect)
        return await (apply_effect(effect, self._api.clock, answer) if effect else answer())

    async def _explained_answer(
        self, http: HttpRequest, request: requests.Request, caller: Caller, effect: Effect | None
    ) -> Response:
        return await _explained(self._answer(http, request, caller, effect), caller.version)

    async def _answer(
        self, http: HttpRequest, request: requests.Request, caller: Caller, effect: Effect | None
    ) -> Response:
        answer = self._api.answer(request, caller, effect)
        if inspect.isawaitable(answer.result):
            with answer.call.center.sessions.answering(answer.call.member):
                answer.result = await _unless_gone(http, answer.result)
        return _answered(http, answer)


def _caller(http: HttpRequest) -> Caller:
    return Caller(
        cookie=http.cookies.get(COOKIE),
        version=version_of(http.headers.get("soapaction", "")),
        address=http.client.host if http.client else "",
        agent=http.headers.get("user-agent", ""),
    )


async def _explained(answer: Awaitable[Response], version: Any) -> Response:
    """Whatever happens is answered: a result or a fault, never a traceback."""
    try:
        return await answer
    except vmodl.MethodFault as fault:
        return _failed(fault, version)
    except requests.UnknownMethod as unknown:
        return _failed(faults.method_not_found(str(unknown)), version)
    except requests.BadRequest as bad:
        return bodies.with_an_end(_failed(faults.invalid_request(str(bad)), version), bad)
    except Exception as error:
        _log.exception("the simulated vCenter could not answer")
        return _failed(vmodl.fault.SystemError(msg=f"A general system error occurred: {error}", reason=str(error)))


async def _versions(http: HttpRequest) -> Response:
    return Response(service.versions_xml(), media_type=_XML)


def _answered(http: HttpRequest, answer: Answer) -> Response:
    response, session = Response(answer.soap(), media_type=_XML), answer.call.session
    if answer.request.method == "Login" and session:
        response.set_cookie(COOKIE, session.key, path="/", httponly=True, secure=http.url.scheme == "https")
    return response


def _failed(fault: Any, version: Any = NEWEST) -> Response:
    return Response(fault_response(fault, version), status_code=500, media_type=_XML)


async def _unless_gone(http: HttpRequest, result: Any) -> Any:
    """Wait for the result, but no longer than the client does."""
    waiting = asyncio.ensure_future(result)
    gone = asyncio.ensure_future(_disconnect(http))
    try:
        await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
        return await waiting if waiting.done() else None
    finally:
        waiting.cancel()
        gone.cancel()


async def _disconnect(http: HttpRequest) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass
