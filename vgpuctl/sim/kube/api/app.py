"""The API over HTTP: a thin door in front of `Api`. It knows tokens, bodies and streams, no kinds."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable
from functools import partial

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import do_nothing
from vgpuctl.sim.fault_effects import AbortedConnection, apply_effect
from vgpuctl.sim.faults import Effect, How
from vgpuctl.sim.http_body import read_at_most
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.api.api import Api
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.request import JSON, Request, Target, target_of
from vgpuctl.sim.kube.api.watching import Watch, WatchEvent
from vgpuctl.sim.kube.objects import Object

BODY_LIMIT = 3 * 1024 * 1024
_WRITTEN = 256
_log = logging.getLogger(__name__)


class KubernetesApp:
    """The whole API as an ASGI application. Run it in the loop that also drives the world's clock."""

    def __init__(self, api: Api, calls: Calls, token: str) -> None:
        self.api = api
        self._calls = calls
        self._token = token
        self._written = Written()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            response = await _explained(self._meet(HttpRequest(scope, receive)))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _meet(self, http: HttpRequest) -> Response:
        """The request is read, counted, and answered unless a fault meets it."""
        if http.scope["path"] in ("/healthz", "/readyz", "/livez"):
            return PlainTextResponse("ok")
        self._check_token(http.headers)
        request = _request(http, await _body(http))
        target = _target(request)
        effect = self._counted(request, target)
        if effect is None:
            return await self._answer(request, target)
        if effect.how is How.FAIL:
            raise errors.injected(int(effect.what), effect.seconds)
        if effect.how is How.LOSE_REPLY and request.watch:
            return AbortedConnection()  # a stream is its reply: there is nothing else to carry out
        return await apply_effect(effect, self.api.clock, partial(self._explained_answer, request, target))

    async def _explained_answer(self, request: Request, target: Target | None) -> Response:
        return await _explained(self._answer(request, target))

    async def _answer(self, request: Request, target: Target | None) -> Response:
        answer = self.api.answer(request, target)
        if isinstance(answer, Watch):
            return StreamingResponse(self._stream(answer), media_type=JSON)
        is_stored = "uid" in (answer.body.get("metadata") or {})
        body = self._written.of(answer.body) if is_stored else _encoded(answer.body)
        return Response(body, answer.code, media_type=answer.media_type)

    def _check_token(self, headers: Headers) -> None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self._token.encode()):
            raise errors.unauthorized()

    def _counted(self, request: Request, target: Target | None) -> Effect | None:
        """Calls on resources are counted; looking around (discovery) is not."""
        if target is None:
            return None
        return self._calls.count("kubernetes", f"{request.method} {target.called}", *target.names)

    async def _stream(self, watch: Watch) -> AsyncIterator[bytes]:
        """Lines of JSON until the watch ends or the client leaves."""
        something = asyncio.Event()
        watch.on_event = something.set
        drawer = TableDrawer(self.api, watch, self._written)
        try:
            while True:
                something.clear()
                if lines := b"".join(drawer.line(event) for event in watch.take()):
                    yield lines
                if watch.ended:
                    return
                await something.wait()
        finally:
            self.api.watches.discard(watch)
            watch.on_event = do_nothing
            watch.close()


async def _explained(answer: Awaitable[Response]) -> Response:
    """Whatever happens is answered: a result or a Status, never a traceback."""
    try:
        return await answer
    except ApiError as error:
        return _refusal(error)
    except ClientDisconnect:
        raise
    except Exception:
        _log.exception("the simulated Kubernetes could not answer")
        return _refusal(errors.ApiError(500, "InternalError", "Internal error occurred"))


def _target(request: Request) -> Target | None:
    try:
        return target_of(request.path)
    except ApiError:
        return None


class Written:
    """Objects as JSON. Who writes one and all who watch it are told the same: it is written once, for what is stored is
    never altered in place."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Object, bytes]] = {}

    def of(self, item: Object) -> bytes:
        known = self._known.get(id(item))
        if known is None:
            if len(self._known) >= _WRITTEN:
                self._known.clear()
            known = self._known[id(item)] = (item, _encoded(item))
        return known[1]


class TableDrawer:
    """Events as they are, or each as a table of one row; only the first of those tells the columns."""

    def __init__(self, api: Api, watch: Watch, written: Written) -> None:
        self._api, self._written = api, written
        self._watch = watch
        self._told_columns = False

    def line(self, event: WatchEvent) -> bytes:
        shown = self._shown(event)
        written = self._written.of(shown) if shown is event.object else _encoded(shown)
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), written)

    def _shown(self, event: WatchEvent) -> Object:
        if not self._watch.request.wants_table or event.type == "ERROR":
            return event.object
        metadata = {"resourceVersion": event.object["metadata"]["resourceVersion"]}
        items = [event.object] if event.is_object else []
        table = self._api.table(self._watch.request, self._watch.target, items, metadata)
        if self._told_columns:
            del table["columnDefinitions"]
        self._told_columns = True
        return table


async def _body(http: HttpRequest) -> bytes:
    body = await read_at_most(http, BODY_LIMIT)
    if body is None:
        raise errors.too_large(BODY_LIMIT)
    return body


def _request(http: HttpRequest, body: bytes) -> Request:
    accept = http.headers.get("accept", "*/*")
    if "json" not in accept and "*/*" not in accept and "application/*" not in accept:
        raise errors.not_acceptable()
    return Request(
        method=http.method,
        path=http.scope["path"],
        query=dict(http.query_params),
        body=body,
        content_type=http.headers.get("content-type", ""),
        accept=accept,
        agent=http.headers.get("user-agent", ""),
    )


def _refusal(error: ApiError) -> Response:
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else {}
    if error.code == 413:
        # The rest of the body is never read, so the connection cannot be used again.
        headers["Connection"] = "close"
    return Response(_encoded(error.status()), error.code, headers, media_type=JSON)


def _encoded(body: Object) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
