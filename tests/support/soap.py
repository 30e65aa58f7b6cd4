"""SOAP requests of one's own making, put to a world's vCenter without a socket."""

from __future__ import annotations

import asyncio
import logging
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

from vgpuctl.sim.vcenter.wire.app import vcenter_app
from vgpuctl.sim.world import World

ENVELOPE = "http://schemas.xmlsoap.org/soap/envelope/"
_FAULT = f"{{{ENVELOPE}}}Body/{{{ENVELOPE}}}Fault"
WITHIN_S = 20


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def fault(self) -> str:
        """The fault's name; nothing where there is none. It must be XML in any case."""
        found = ET.fromstring(self.body).find(_FAULT)
        if found is None:
            return ""
        (detail,) = found.find("detail") or [None]
        assert detail is not None
        return detail.tag.rpartition("}")[2].removesuffix("Fault")

    @property
    def message(self) -> str:
        found = ET.fromstring(self.body).find(f"{_FAULT}/faultstring")
        return (found.text or "") if found is not None else ""


@dataclass
class SoapClient:
    """A session of the user who may do everything. `troubles` are what vCenter logged, which must be nothing."""

    world: World
    troubles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.app = vcenter_app(self.world.center, self.world.calls)
        sessions = self.world.center.sessions
        self.cookie = sessions.begin(sessions.accounts[self.world.logins.user], "127.0.0.1", "test").key

    def post(self, body: bytes, headers: Mapping[str, str] | None = None, pieces: int = 1) -> Answer:
        """The client is gone once it has asked: what would wait for ever ends."""
        given = {"cookie": f"vmware_soap_session={self.cookie}", "soapaction": "urn:vim25/8.0.3.0", **(headers or {})}
        return asyncio.run(asyncio.wait_for(self._post(list(_cut(body, pieces)), given), WITHIN_S))

    async def _post(self, parts: list[bytes], headers: Mapping[str, str]) -> Answer:
        coming: list[dict[str, Any]] = [
            {"type": "http.request", "body": part, "more_body": number < len(parts)}
            for number, part in enumerate(parts, start=1)
        ]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return coming.pop(0) if coming else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(dict(message))

        with _listening(self.troubles):
            await self.app(_scope(headers), receive, send)
        names = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], names, b"".join(message.get("body", b"") for message in sent[1:]))


class _listening(logging.Handler):  # noqa: N801
    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(logging.Formatter().format(record))

    def __enter__(self) -> None:
        logging.getLogger("vgpuctl").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("vgpuctl").removeHandler(self)


def envelope(body: str) -> bytes:
    return f'<Envelope xmlns="{ENVELOPE}"><Body>{body}</Body></Envelope>'.encode()


def call(method: str, this: tuple[str, str], *arguments: str) -> bytes:
    kind, moid = this
    inner = f'<_this type="{kind}">{escape(moid)}</_this>{"".join(arguments)}'
    return envelope(f'<{method} xmlns="urn:vim25">{inner}</{method}>')


def _cut(body: bytes, pieces: int) -> Iterable[bytes]:
    size = max(1, -(-len(body) // pieces))
    yield from ([body[start : start + size] for start in range(0, len(body), size)] or [b""])


def _scope(headers: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": "/sdk",
        "raw_path": b"/sdk",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 443),
    }
