"""The simulated vCenter over HTTP."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.disturbance import disturbed
from vgpuctl.sim.faults import Effect, How
from vgpuctl.sim.vcenter import (
    bodies,
    device_xml,  # noqa: F401 - the imports that look unused register what they have
    environment_methods,  # noqa: F401
    event_methods,  # noqa: F401
    faults,
    graphics_methods,  # noqa: F401
    growth_methods,  # noqa: F401
    host_methods,  # noqa: F401
    property_methods,  # noqa: F401
    requests,
    right_methods,  # noqa: F401
    rights,
    search_methods,  # noqa: F401
    service,
    session_methods,  # noqa: F401
    task_methods,  # noqa: F401
    view_methods,  # noqa: F401
    vm_methods,  # noqa: F401
)
from vgpuctl.sim.vcenter.center import Center
from vgpuctl.sim.vcenter.dispatch import HANDLERS, OPEN_TO_ALL, Call
from vgpuctl.sim.vcenter.metadata import NEWEST, version_of
from vgpuctl.sim.vcenter.refusals import Refusal
from vgpuctl.sim.vcenter.serialiser import Xml, fault_response, response, serialise
from vgpuctl.sim.vcenter.sessions import COOKIE, Session
from vgpuctl.sim.vcenter.tasks import HANGS, Fate
from vgpuctl.sim.vcenter.vmomi import support, vim, vmodl

_XML = 'text/xml; charset="utf-8"'
_log = logging.getLogger(__name__)


def vcenter_app(center: Center, calls: Calls) -> Starlette:
    """vCenter's API as an ASGI application. Run it in the loop that also drives the world's clock."""
    endpoint = _Endpoint(center, calls)
    return Starlette(
        routes=[
            Route("/sdk", endpoint.soap, methods=["POST"]),
            Route("/sdk/", endpoint.soap, methods=["POST"]),
            Route("/sdk/vimServiceVersions.xml", _versions),
        ]
    )


class _Endpoint:
    def __init__(self, center: Center, calls: Calls) -> None:
        self.center = center
        self._calls = calls

    async def soap(self, http: HttpRequest) -> Response:
        return await _explained(self._meet(http), NEWEST)

    async def _meet(self, http: HttpRequest) -> Response:
        """The request is read, counted, and answered unless a fault meets it."""
        version = version_of(http.headers.get("soapaction", ""))
        request = requests.parse(await bodies.read(http))
        answer = partial(self._answer, http, request, version)
        effect = self._calls.count("vcenter", request.method, *self._names(request.this))
        return await (self._disturbed(effect, answer) if effect else answer())

    async def _answer(self, http: HttpRequest, request: requests.Request, version: Any, fate: Fate = None) -> Response:
        return await _explained(self._answered(http, request, version, fate), version)

    async def _answered(self, http: HttpRequest, request: requests.Request, version: Any, fate: Fate) -> Response:
        call = self._call(http, request, version)
        result = await self._result(http, call, request)
        if fate and isinstance(result, vim.Task):
            self.center.estate.work.doom(result._moId, fate)
        return _answered(http, call, request, result)

    async def _disturbed(self, effect: Effect, answer: Callable[..., Awaitable[Response]]) -> Response:
        match effect.how:
            case How.FAIL:
                raise faults.by_name(effect.what)
            case How.END_SESSIONS:
                self.center.sessions.end_all()
            case How.TASK_FAILS:
                return await answer(fate=faults.refusal_by_name(effect.what))
            case How.TASK_HANGS:
                return await answer(fate=HANGS)
        return await disturbed(effect, self.center.estate.clock, answer)

    def _names(self, ref: Any) -> tuple[str, ...]:
        """By which a fault may be meant for an object."""
        thing = self.center.find(ref, None)
        name = self.center.read(thing, "name", None) if thing and isinstance(ref, vim.ManagedEntity) else ""
        return (ref._moId, name) if name else (ref._moId,)

    def _call(self, http: HttpRequest, request: requests.Request, version: Any) -> Call:
        session = self.center.sessions.find(http.cookies.get(COOKIE))
        if not session and request.method not in OPEN_TO_ALL:
            raise faults.not_authenticated(request.this)
        thing = self.center.find(request.this, session)
        if not thing:
            raise faults.not_found(request.this)
        rights.check(session, request)
        if request.method not in HANDLERS or not isinstance(thing.ref, request.info.type):
            raise faults.not_supported(request.method)
        address = http.client.host if http.client else ""
        self._note_activity(session)
        return Call(self.center, session, thing, version, address, http.headers.get("user-agent", ""))

    async def _result(self, http: HttpRequest, call: Call, request: requests.Request) -> Any:
        with self.center.history.acted_by(call.session.user if call.session else ""):
            result = HANDLERS[request.method](call, *request.arguments)
        if not inspect.isawaitable(result):
            return result
        with self.center.sessions.answering(call.member):
            return await _unless_gone(http, result)

    def _note_activity(self, session: Session | None) -> None:
        if session:
            session.calls += 1
            self.center.sessions.touch(session)


async def _explained(answer: Awaitable[Response], version: Any) -> Response:
    """Whatever happens is answered: a result or a fault, never a traceback."""
    try:
        return await answer
    except vmodl.MethodFault as fault:
        return _failed(fault, version)
    except Refusal as refusal:
        return _failed(faults.fault_of(refusal), version)
    except requests.UnknownMethod as unknown:
        return _failed(faults.method_not_found(str(unknown)), version)
    except requests.BadRequest as bad:
        return bodies.with_an_end(_failed(faults.invalid_request(str(bad)), version), bad)
    except Exception as error:
        _log.exception("the simulated vCenter could not answer")
        return _failed(vmodl.fault.SystemError(msg=f"A general system error occurred: {error}", reason=str(error)))


async def _versions(http: HttpRequest) -> Response:
    return Response(service.versions_xml(), media_type=_XML)


def _answered(http: HttpRequest, call: Call, request: requests.Request, result: Any) -> Response:
    answer = Response(response(request.method, _content(call, request, result)), media_type=_XML)
    if request.method == "Login" and call.session:
        answer.set_cookie(COOKIE, call.session.key, path="/", httponly=True, secure=http.url.scheme == "https")
    return answer


def _content(call: Call, request: requests.Request, result: Any) -> str:
    if result is None or isinstance(result, Xml):
        return result or ""
    declared = _kind_of(result) if request.info is requests.FETCH else request.info.result
    return serialise("returnval", result, declared, call.version)


def _kind_of(result: Any) -> Any:
    """Of one property: a data object may be a subtype of what the client knows it to be, and so says what it is."""
    return object if isinstance(result, support.DataObject) else type(result)


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
