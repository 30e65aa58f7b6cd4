"""What the server answers. It only reads: every method but GET and HEAD is refused."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vgpuctl.daemon.serving.status_documents import as_body
from vgpuctl.model.errors import UsageError

Answer = dict[str, Any]

#: What every reply carries. The pages have no script, no form and no resource of another origin.
SAFE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Referrer-Policy": "no-referrer",
}
#: Kubernetes: kubelet's probes carry no token that could be rotated. They show no names.
OPEN = {"/healthz", "/readyz"}
LOCAL_NAMES = {"localhost", "127.0.0.1", "[::1]"}
INDEX = """\
<!doctype html><html lang="en"><title>vgpuctl</title><h1>vgpuctl daemon</h1><ul>
<li><a href="status.json">status.json</a>: the document of <code>vgpuctl status -o json</code></li>
<li><a href="metrics">metrics</a>: for Prometheus</li>
<li><a href="healthz">healthz</a>, <a href="readyz">readyz</a>: for probes</li></ul>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What there is to read. `status`: None before the first picture. `metrics`: in Prometheus's own format."""

    alive: Callable[[], Answer]
    ready: Callable[[], Answer]
    status: Callable[[], Answer | None]
    metrics: Callable[[], bytes]


def make_app(served: Served, token: Callable[[], str] | None, *, local_only: bool) -> ASGIApp:
    """Return the application. `token`: reads the token afresh. `local_only`: refuse other hosts' names."""
    return Guard(
        Starlette(
            routes=[
                # Starlette: GET brings HEAD with it, and answers 405 to any other method.
                Route("/", lambda _request: HTMLResponse(INDEX)),
                Route("/healthz", lambda _request: _judged(served.alive(), "alive")),
                Route("/readyz", lambda _request: _judged(served.ready(), "ready")),
                Route("/status.json", _blocking(lambda: _status(served.status()))),
                Route("/metrics", _blocking(lambda: _metrics(served.metrics()))),
            ]
        ),
        token,
        local_only=local_only,
    )


def _blocking(answer: Callable[[], Response]) -> Callable[[Request], Response]:
    """Return a route's function. As it is no coroutine, Starlette runs it in a thread: probes are not held up."""

    def answered(_request: Request) -> Response:
        return answer()

    return answered


def _judged(answer: Answer, good: str) -> Response:
    return _json(answer, 200 if answer[good] else 503)


def _status(document: Mapping[str, Any] | None) -> Response:
    if document is None:
        return _json({"error": "There is no picture of vCenter and Kubernetes yet."}, 503)
    return _json(dict(document), 200)


def _json(answer: Answer, code: int) -> Response:
    return Response(as_body(answer), code, media_type="application/json")


def _metrics(text: bytes) -> Response:
    # Prometheus: the version belongs to the format.
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


class Guard:
    """Refuses readers without the token, and adds the headers of every reply."""

    def __init__(self, app: ASGIApp, token: Callable[[], str] | None, *, local_only: bool) -> None:
        self._app, self._token, self._local_only = app, token, local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SAFE)
            await send(message)

        refusal = self._refusal(scope["path"], Headers(scope=scope))
        await (refusal or self._app)(scope, receive, safely)

    def _refusal(self, path: str, headers: Headers) -> Response | None:
        # A page that a browser shows may point its own name at loopback, and then read what is served there.
        if self._local_only and _host(headers.get("host", "")) not in LOCAL_NAMES:
            return PlainTextResponse("Ask for localhost: this server is for its own machine.\n", 421)
        if self._token is None or path in OPEN:
            return None
        try:
            token = self._token()
        except UsageError:
            return PlainTextResponse("The server's token cannot be read.\n", 503)
        given = headers.get("authorization", "").encode("latin-1")
        if hmac.compare_digest(given, f"Bearer {token}".encode()):
            return None
        return PlainTextResponse("A bearer token is needed.\n", 401, {"WWW-Authenticate": "Bearer"})


def _host(header: str) -> str:
    """Return the name in a Host header, without its port."""
    name, _, port = header.rpartition(":")
    return (name if name and port.isdecimal() else header).lower()
