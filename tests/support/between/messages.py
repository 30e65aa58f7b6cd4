"""What passes between the product and a server: a request, a whole reply, or the lines of a watch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

KUBERNETES, VCENTER = "kubernetes", "vcenter"
_METHOD = re.compile(rb"Body[^>]*>\s*<(\w+)")
#: What differs between two requests for the same thing.
_MOMENTS = {"resourceVersion", "continue", "timeoutSeconds"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `what`: what it asks for, whenever it does so."""

    server: str
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    what: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "what", self._what())

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.target.partition("?")[2]))

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    def _what(self) -> str:
        if self.server == VCENTER:
            found = _METHOD.search(self.body)
            return found[1].decode() if found else "versions"
        query = {name: value for name, value in self.query.items() if name not in _MOMENTS}
        return f"{self.method} {self.path}{'?' + urlencode(query) if query else ''}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply. `error`: the server refuses the request."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def error(self) -> bool:
        return self.status >= 300

    def head(self, length: int | None = None) -> bytes:
        """The reply's head; with another length than its body has, if one is given."""
        size = len(self.body) if length is None else length
        reason = HTTPStatus(self.status).phrase
        lines = [f"HTTP/1.1 {self.status} {reason}", *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join([*lines, f"Content-Length: {size}", "", ""]).encode()


@dataclass(frozen=True, slots=True)
class Lines:
    """A watch. `take` waits so long for its next events, and returns them as lines; None once it has ended."""

    take: Callable[[float], list[bytes] | None]
    close: Callable[[], None]


WATCH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def read_asked(server: str, data: bytes) -> Asked | None:
    """The request in these bytes, once it is whole."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if len(body) < int(headers.get("content-length", 0)):
        return None
    method, target, _ = first.split(" ")
    return Asked(server, method, target, headers, body)
