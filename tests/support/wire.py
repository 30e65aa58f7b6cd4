"""A server on loopback that answers each request as a test says, byte by byte: what no well-behaved server would do."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import trustme

#: What it does with a connection, once it has read a request.
Script = Callable[["Wire", socket.socket, bytes], None]
WITHIN_S = 20


@dataclass
class Wire:
    """`asked`: each request, head and body. `ended` is set when the test is over, for scripts that never end."""

    script: Script
    tls: ssl.SSLContext | None = None
    asked: list[bytes] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Wire:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(WITHIN_S)
            assert not thread.is_alive()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        """Of the requests, as `GET /api/v1/nodes`."""
        return [" ".join(asked.split(b"\r\n", 1)[0].decode().split()[:2]) for asked in self.asked]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        """A client that hangs up ends it, and so does the test."""
        with suppress(OSError):
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            connection.settimeout(0.2)
            while (asked := self._read(connection)) and not self.ended.is_set():
                self.asked.append(asked)
                self.script(self, connection, asked)
        connection.close()

    def _read(self, connection: socket.socket) -> bytes:
        data = b""
        while not self.ended.is_set():
            head, end, body = data.partition(b"\r\n\r\n")
            if end and len(body) >= _length(head):
                return data
            try:
                more = connection.recv(1 << 16)
            except TimeoutError:
                continue
            if not more:
                return b""
            data += more
        return b""


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A whole answer, of the length that it says."""
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def dripping(first: bytes, drop: bytes = b" ", every_s: float = 0.02) -> Script:
    """So much at once, then a little again and again, without an end."""

    def script(wire: Wire, connection: socket.socket, _: bytes) -> None:
        connection.sendall(first)
        while not wire.ended.wait(every_s):
            connection.sendall(drop)

    return script


def endless(first: bytes, part: bytes) -> Script:
    """As fast as it is read."""
    return dripping(first, part, 0.0)


def saying(*answers: bytes) -> Script:
    """These one after the other, the last for ever."""
    left = list(answers)

    def script(_wire: Wire, connection: socket.socket, _: bytes) -> None:
        connection.sendall(left.pop(0) if left[1:] else left[0])

    return script


def _length(head: bytes) -> int:
    lines = (line.partition(b":") for line in head.split(b"\r\n"))
    return next((int(value) for name, _, value in lines if name.lower() == b"content-length"), 0)


def self_signed() -> ssl.SSLContext:
    """By an authority that nobody knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context
