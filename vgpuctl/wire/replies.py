"""Bounds on what a server may send: how large a reply may be, how long a call may take, how long a silence may last.

The bounds hold at the socket, below pyVmomi and urllib3. Headers count too. A timeout for each read alone is not
enough: a server that sends one byte a second could hold a call for ever.
"""

from __future__ import annotations

import gzip
import io
import math
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple

from vgpuctl.model.errors import PassingError, UnreachableError, VgpuctlError

MIB = 1 << 20
#: An error page is read only for its reason.
MOST_ERROR_BYTES = MIB
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How large one reply may be, and how long one call may take: `call_s`, plus the requested wait of a long poll."""

    # Decision 0018: larger than any ordinary reply. Measured without it: endless JSON grew the process to 2.5 GB.
    reply_mib: float = 256.0
    call_s: float = 120.0


class Call(NamedTuple):
    """One call under way. `until_s`: on the monotonic clock."""

    server: str
    bounds: Bounds
    until_s: float
    silence_s: float
    most_bytes: float

    def too_slow(self) -> VgpuctlError:
        took = f"{self.bounds.call_s:g} s"
        return PassingError(
            f"{self.server} did not finish its reply within {took}.",
            hint="If the server is always slow, raise the setting call-seconds.",
        )

    def too_large(self) -> VgpuctlError:
        most = f"{self.bounds.reply_mib:g} MiB"
        return UnreachableError(
            f"{self.server} sends a reply of more than {most}.",
            hint="If a reply of this size is normal, raise the setting reply-mib.",
        )


# pyVmomi and urllib3 each read a reply in the thread that asked, so a call is found by its thread.
_THREAD = threading.local()


def begin(server: str, bounds: Bounds, silence_s: float, *, wait_s: float = 0.0, endless: bool = False) -> None:
    """Begin a call: the next reply that this thread reads belongs to it.

    `wait_s`: how long a long poll was asked to wait. `endless`: a watch, whose reader bounds each event.
    """
    most_bytes = math.inf if endless else bounds.reply_mib * MIB
    _THREAD.call = Call(server, bounds, time.monotonic() + wait_s + bounds.call_s, wait_s + silence_s, most_bytes)


# Measured (decision 0018): a patch costs 2 µs more for this, of 109.
class _Socket(socket.SocketIO):
    """The socket as a response reads it: each read is timed and counted."""

    def __init__(self, sock: Any, call: Call) -> None:
        super().__init__(sock, "r")
        # As `socket.makefile` does: the socket stays open until its reader is closed.
        sock._io_refs += 1
        self.call, self.left = call, call.most_bytes

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a reader, as `socket.makefile` does. A response calls it."""
        return io.BufferedReader(self)

    def readinto(self, buffer: Any) -> int | None:
        # Decision 0018: a server that sends one byte a second met every timeout of a single read.
        left_s = self.call.until_s - time.monotonic()
        if left_s <= 0:
            raise self.call.too_slow()
        self._sock.settimeout(min(left_s, self.call.silence_s))  # type: ignore[attr-defined]
        try:
            count = super().readinto(buffer)
        except TimeoutError:
            if left_s <= self.call.silence_s:
                raise self.call.too_slow() from None
            raise
        self.take(count or 0)
        return count

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise self.call.too_large()


class BoundedResponse(HTTPResponse):
    """A response within the bounds of its call. Packed data is unpacked here, where its size is counted."""

    def __init__(self, sock: Any, *args: Any, **more: Any) -> None:
        self._socket = _Socket(sock, _THREAD.call)
        self._plain: gzip.GzipFile | None = None
        self._unpacked = self._socket.call.most_bytes
        super().__init__(self._socket, *args, **more)  # type: ignore[arg-type]

    def begin(self) -> None:
        super().begin()
        if self.status >= 300:
            self._socket.left = self._unpacked = min(self._socket.left, MOST_ERROR_BYTES)
        elif (self.length or 0) > self._socket.left:
            raise self._socket.call.too_large()
        encoding = str(self.headers.get("Content-Encoding") or "identity").lower()
        if encoding == "gzip":
            # Both headers describe the socket's bytes, not what is read here.
            del self.headers["Content-Encoding"], self.headers["Content-Length"]
            self._plain = gzip.GzipFile(fileobj=_Packed(self))
        elif encoding != "identity":
            raise HTTPException(f"the reply is compressed as {encoding[:20]}, which was not requested")

    def read(self, amt: int | None = None) -> bytes:
        if self._plain is None:
            return super().read(amt)
        if amt is not None:
            return self._counted(self._plain.read(amt))
        # Decision 0018: packed replies count in full, because that is what they take in memory.
        parts = []
        while part := self._counted(self._plain.read(CHUNK)):
            parts.append(part)
        return b"".join(parts)

    def read_packed(self, amt: int) -> bytes:
        return super().read(amt)

    def _counted(self, data: bytes) -> bytes:
        self._unpacked -= len(data)
        if self._unpacked < 0:
            raise self._socket.call.too_large()
        return data

    def _read_next_chunk_size(self) -> int:
        """Bound the chunk's size. http.client makes room for a whole chunk before its first byte arrives."""
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size > self._socket.left:
            raise self._socket.call.too_large()
        return size


class _Packed(io.RawIOBase):
    """The packed bytes of a response, for the unpacker."""

    def __init__(self, response: BoundedResponse) -> None:
        self._response = response

    def read(self, amt: int = -1) -> bytes:
        return self._response.read_packed(amt if amt >= 0 else CHUNK)


class BoundedHTTPSConnection(HTTPSConnection):
    """A bounded HTTPS connection for pyVmomi."""

    response_class = BoundedResponse


def bounded(pools: dict[str, Any], tls: Callable[[], ssl.SSLContext]) -> dict[str, Any]:
    """Return urllib3's pools by scheme.

    Their connections answer with bounded responses, and use the TLS context of the moment they are made.
    """
    return {scheme: _bounded(pool, tls) for scheme, pool in pools.items()}


def _bounded(pool: Any, tls: Callable[[], ssl.SSLContext]) -> Any:
    def connect(self: Any) -> None:
        # Certificates are renewed while a daemon runs, so each new connection takes the context of that moment.
        self.ssl_context = tls()
        pool.ConnectionCls.connect(self)

    of_connections = {"response_class": BoundedResponse, "connect": connect}
    connection = type(pool.ConnectionCls.__name__, (pool.ConnectionCls,), of_connections)
    return type(pool.__name__, (pool,), {"ConnectionCls": connection})
