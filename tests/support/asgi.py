"""Asks an ASGI application without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message

from vgpuctl.daemon.serving.app import Served, make_app


@dataclass
class Reply:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


def ask(app: ASGIApp, path: str, method: str = "GET", **headers: str) -> Reply:
    """The reply to one request. It names localhost unless another host is given."""
    reply = Reply()
    sent = {"host": "localhost:9464", **headers}

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            reply.body += message.get("body", b"")

    asyncio.run(app(_scope(path, method, sent), receive, send))  # type: ignore[arg-type]
    return reply


def _scope(path: str, method: str, headers: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 9464),
        "client": ("127.0.0.1", 1),
    }


def served_app(
    token: Callable[[], str] | None = None,
    *,
    alive: bool = True,
    missing: tuple[str, ...] = (),
    status: dict[str, Any] | None = None,
    local_only: bool = True,
) -> ASGIApp:
    """The daemon's application over answers that a test gives."""
    served = Served(
        alive=lambda: {"alive": alive},
        ready=lambda: {"ready": not missing, "missing": list(missing)},
        status=lambda: status,
        metrics=lambda: b"vgpuctl_ready 1\n",
    )
    return make_app(served, token, local_only=local_only)
