"""HTTP requests put to a world's Kubernetes in this thread, without a socket."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

from vgpuctl.sim.kube.api.app import KubernetesApp
from vgpuctl.sim.world import World

JSON = "application/json"


class Asked:
    """The application that the server stands before; time moves only when it is told to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._app = KubernetesApp(world.api, world.calls, world.logins.token)

    def send(
        self, method: str, target: str, body: object = b"", content_type: str = JSON, token: str | None = None
    ) -> tuple[int, Any]:
        """The status, and what the answer says. Bytes are sent as they are, anything else as JSON."""
        shown = self.world.logins.token if token is None else token
        scope = _scope(method, target, {"content-type": content_type, "authorization": f"Bearer {shown}"})
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": payload, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        _at_once(self._app(scope, receive, send))
        start, *parts = sent
        return start["status"], json.loads(b"".join(part.get("body", b"") for part in parts))


def _at_once(answering: Coroutine[Any, Any, None]) -> None:
    """Without a loop, which would take longer than the answer. Only streams wait, and none is asked for here."""
    with suppress(StopIteration):
        answering.send(None)
        raise AssertionError("the answer waits for something")


def _scope(method: str, target: str, headers: Mapping[str, str]) -> dict[str, Any]:
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 2),
        "server": ("127.0.0.1", 1),
    }
