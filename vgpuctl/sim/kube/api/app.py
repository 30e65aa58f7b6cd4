"""The API over HTTP: it handles tokens, bodies and streams, and passes requests to `Api`."""

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
from vgpuctl.sim.kube.access.attributes import attributes_of
from vgpuctl.sim.kube.access.impersonation import impersonated
from vgpuctl.sim.kube.access.users import ADMIN, User
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.api.api import Api
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.request import JSON, Request, Target, target_of
from vgpuctl.sim.kube.api.watching import Watch, WatchEvent
from vgpuctl.sim.kube.objects import Object

#: kube-apiserver: MaxRequestBodyBytes, 3 MiB.
BODY_LIMIT = 3 * 1024 * 1024
_MAX_CACHED = 256
_log = logging.getLogger(__name__)


class KubernetesApp:
    """The whole API as an ASGI application. It runs in the event loop that also drives the world's clock."""

    def __init__(self, api: Api, calls: Calls, token: str) -> None:
        self.api = api
        self._calls = calls
        self._token = token
        self._json_cache = JsonCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            response = await _with_errors_as_status(self._handle(HttpRequest(scope, receive)))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _handle(self, http: HttpRequest) -> Response:
        """Read and count the request, then answer it or let a fault take effect."""
        # Kubernetes: health checks need no login by default.
        if http.scope["path"] in ("/healthz", "/readyz", "/livez"):
            return PlainTextResponse("ok")
        caller = self._user_of(http.headers)
        asked = partial(attributes_of, http.method, http.scope["path"], http.query_params)
        user = impersonated(caller, http.headers, asked)
        request = _parse_request(http, await _read_body(http), user)
        target = _target_or_none(request)
        effect = self._count(request, target)
        if effect is None:
            return await self._answer(request, target)
        if effect.how is How.FAIL:
            raise errors.injected(int(effect.what), effect.seconds)
        if effect.how is How.LOSE_REPLY and request.watch:
            return AbortedConnection()  # a watch changes nothing, so only its reply could be lost
        return await apply_effect(effect, self.api.clock, partial(self._answer_with_errors, request, target))

    async def _answer_with_errors(self, request: Request, target: Target | None) -> Response:
        return await _with_errors_as_status(self._answer(request, target))

    async def _answer(self, request: Request, target: Target | None) -> Response:
        answer = self.api.answer(request, target)
        if isinstance(answer, Watch):
            # Kubernetes: a watch is one line of JSON for each event.
            return StreamingResponse(self._stream(answer), media_type=JSON)
        is_stored = "uid" in (answer.body.get("metadata") or {})
        body = self._json_cache.encoded(answer.body) if is_stored else _encode(answer.body)
        return Response(body, answer.code, media_type=answer.media_type)

    def _user_of(self, headers: Headers) -> User:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        found = self._owner_of(token.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            # Measured: kube-apiserver 1.36 answers 401 to a wrong token.
            raise errors.unauthorized()
        return found

    def _owner_of(self, token: str) -> User | None:
        is_admins = hmac.compare_digest(token.encode(), self._token.encode())
        return ADMIN if is_admins else self.api.tokens.user_of(token)

    def _count(self, request: Request, target: Target | None) -> Effect | None:
        """Count calls on resources. Discovery is not counted."""
        if target is None:
            return None
        return self._calls.count("kubernetes", f"{request.method} {target.resource}", *target.names)

    async def _stream(self, watch: Watch) -> AsyncIterator[bytes]:
        """Yield lines of JSON until the watch ends or the client leaves."""
        pending = asyncio.Event()
        watch.on_event = pending.set
        encoder = WatchEncoder(self.api, watch, self._json_cache)
        try:
            while True:
                pending.clear()
                if lines := b"".join(encoder.line(event) for event in watch.take()):
                    yield lines
                if watch.ended:
                    return
                await pending.wait()
        finally:
            self.api.watches.discard(watch)
            watch.on_event = do_nothing
            watch.close()


async def _with_errors_as_status(answer: Awaitable[Response]) -> Response:
    """Return the response, or a Status for any exception. A client never gets a traceback."""
    try:
        return await answer
    except ApiError as error:
        return _status_response(error)
    except ClientDisconnect:
        raise
    except Exception:
        _log.exception("the simulated Kubernetes could not answer")
        return _status_response(errors.ApiError(500, "InternalError", "Internal error occurred"))


def _target_or_none(request: Request) -> Target | None:
    try:
        return target_of(request.path)
    except ApiError:
        return None


class JsonCache:
    """Objects as JSON. The writer of an object and all its watchers get the same bytes, so each object is encoded once.

    An entry stays valid because a stored object is never changed in place.
    """

    def __init__(self) -> None:
        self._cached: dict[int, tuple[Object, bytes]] = {}

    def encoded(self, item: Object) -> bytes:
        # Decision 0015: an object is serialised once for all its watchers.
        cached = self._cached.get(id(item))
        if cached is None:
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            cached = self._cached[id(item)] = (item, _encode(item))
        return cached[1]


class WatchEncoder:
    """Encodes events as they are, or each as a table of one row. Only the first table has the column definitions."""

    def __init__(self, api: Api, watch: Watch, json_cache: JsonCache) -> None:
        self._api, self._json_cache = api, json_cache
        self._watch = watch
        self._sent_columns = False

    def line(self, event: WatchEvent) -> bytes:
        document = self._document(event)
        encoded = self._json_cache.encoded(document) if document is event.object else _encode(document)
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), encoded)

    def _document(self, event: WatchEvent) -> Object:
        if not self._watch.request.wants_table or event.type == "ERROR":
            return event.object
        metadata = {"resourceVersion": event.object["metadata"]["resourceVersion"]}
        items = [event.object] if event.is_object else []
        table = self._api.table(self._watch.request, self._watch.target, items, metadata)
        if self._sent_columns:
            del table["columnDefinitions"]
        self._sent_columns = True
        return table


async def _read_body(http: HttpRequest) -> bytes:
    body = await read_at_most(http, BODY_LIMIT)
    if body is None:
        raise errors.too_large(BODY_LIMIT)
    return body


def _parse_request(http: HttpRequest, body: bytes, user: User) -> Request:
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
        user=user,
    )


def _status_response(error: ApiError) -> Response:
    # Measured: kube-apiserver 1.36 sends Retry-After where the Status has `retryAfterSeconds`.
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else {}
    if error.code == 413:
        # The rest of the body stays unread, so the connection cannot be used again.
        headers["Connection"] = "close"
    return Response(_encode(error.status()), error.code, headers, media_type=JSON)


def _encode(body: Object) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
