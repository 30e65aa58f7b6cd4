"""Connections of the product's own HTTP clients that are no sockets: what they send is answered in the same thread."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.support.between.adversary import HangUp
from tests.support.between.messages import KUBERNETES, VCENTER, Asked, read_asked
from vgpuctl.kube import access, client
from vgpuctl.vsphere import session
from vgpuctl.wire import replies

#: What reaches the client of the answer to a request.
Carry = Callable[[Asked], Iterator[bytes]]


class Connection:
    """What the clients use of a socket."""

    def __init__(self, server: str, carry: Carry) -> None:
        self._server, self._carry = server, carry
        self._asked = b""
        self._coming: Iterator[bytes] = iter(())
        self._read = b""
        self._ended = False
        self._io_refs = 0

    def sendall(self, data: bytes) -> None:
        if self._ended:
            raise BrokenPipeError("the connection has ended")
        self._asked += bytes(data)
        if asked := read_asked(self._server, self._asked):
            self._asked, self._coming = b"", self._carry(asked)

    def recv_into(self, buffer: Any) -> int:
        while not self._read and not self._ended:
            try:
                self._read = next(self._coming)
            except HangUp:
                self._ended = True
            except StopIteration:
                raise AssertionError("more was read than was sent") from None
        size = min(len(buffer), len(self._read))
        buffer[:size], self._read = self._read[:size], self._read[size:]
        return size

    def close(self) -> None:
        self._ended = True
        close = getattr(self._coming, "close", None)
        if close:
            close()

    def settimeout(self, _seconds: float | None) -> None:
        """No bound of the product is met here: each wait ends with the test."""

    def setsockopt(self, *_: object) -> None:
        """There is nothing to set."""

    def _decref_socketios(self) -> None:
        self._io_refs -= 1


def lead_to(carry: Callable[[str], Carry], patch: pytest.MonkeyPatch) -> None:
    """From now on a new connection of either client to HOST is answered by `carry(HOST)`. Certificates are not read."""

    def connect(self: Any) -> None:
        self.sock = Connection(VCENTER, carry(self.host))

    patch.setattr(replies.BoundedHTTPSConnection, "connect", connect)
    sound = replies.bounded

    def bounded(pools: dict[str, Any], tls: Any) -> dict[str, Any]:
        return {scheme: _answered_by(pool, carry) for scheme, pool in sound(pools, tls).items()}

    patch.setattr(replies, "bounded", bounded)
    # Each costs more than a whole picture: certificates of the system, and YAML.
    patch.setattr(session, "context", lambda *_: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    patch.setattr(client, "read_access", _read_access)


_read_access = cache(access.read_access)


def _answered_by(pool: Any, carry: Callable[[str], Carry]) -> Any:
    mine = {
        "_new_conn": lambda self: Connection(KUBERNETES, carry(self.host)),
        "is_connected": property(lambda self: self.sock is not None),
    }
    return type(pool.__name__, (pool,), {"ConnectionCls": type("Answered", (pool.ConnectionCls,), mine)})
