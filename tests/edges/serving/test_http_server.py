"""The HTTP server over real sockets: TLS from files, bounds, and a quick end."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

import pytest
import trustme

from tests.support.asgi import served_app as app
from vgpuctl.daemon.serving import http_server
from vgpuctl.daemon.serving.http_server import HttpServer
from vgpuctl.model.errors import UsageError
from vgpuctl.settings.listening import Listening

LOCAL = Listening(host="127.0.0.1", port=0)


@contextmanager
def serving(listening: Listening = LOCAL, said: list[str] | None = None) -> Iterator[HttpServer]:
    server = HttpServer(listening, app(status={}), (said if said is not None else []).append)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def get(port: int, path: str = "/healthz") -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    return connection.getresponse().status


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_answers_on_loopback_and_ends_within_a_second_whatever_is_under_way() -> None:
    with serving() as server:
        assert get(server.port) == 200
        idle = socket.create_connection(("127.0.0.1", server.port))
        idle.sendall(b"GET /status.json HTTP/1.1\r\n")
        began_s = time.monotonic()
        server.stop()
        assert time.monotonic() - began_s < 1.0
        with pytest.raises(ConnectionRefusedError):
            get(server.port)


def test_it_ends_at_once_also_if_it_never_began() -> None:
    HttpServer(LOCAL, app(), lambda _text: None).stop()


def test_an_address_that_is_taken_is_said_before_the_daemon_does_anything() -> None:
    with (
        serving() as server,
        pytest.raises(UsageError, match=r"cannot listen on 127.0.0.1:\d+: Address already in use"),
    ):
        HttpServer(Listening(host="127.0.0.1", port=server.port), app(), lambda _text: None)


def test_a_connection_that_never_finishes_its_request_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "CONNECTION_S", 0.2)
    with serving() as server:
        slow = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        slow.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n")
        assert slow.recv(1) == b""
        assert get(server.port) == 200


def test_beyond_so_many_connections_readers_get_503_until_others_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "CONNECTIONS", 4)
    with serving() as server:
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(6)]
        until(lambda: get(server.port) == 503)
        for each in idle:
            each.close()
        until(lambda: get(server.port) == 200)


class Files:
    """A certificate and its key as files, which may be rotated."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key, self.ca = folder / "tls.crt", folder / "tls.key", trustme.CA()
        self.rotate()

    def rotate(self, *, key: bool = True) -> None:
        made = self.ca.issue_cert("127.0.0.1")
        self.certificate.write_bytes(made.cert_chain_pems[0].bytes())
        if key:
            self.key.write_bytes(made.private_key_pem.bytes())

    @property
    def listening(self) -> Listening:
        return Listening(host="127.0.0.1", port=0, certificate=self.certificate, key=self.key)

    def shown(self, port: int) -> bytes:
        """The certificate that a new connection is shown, once its authority has been checked."""
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        connection = HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        connection.request("GET", "/healthz")
        assert connection.sock is not None
        found: bytes = connection.sock.getpeercert(binary_form=True) or b""
        assert connection.getresponse().status == 200
        connection.close()
        return found


def test_a_certificate_that_is_rotated_is_shown_to_new_connections(tmp_path: Path) -> None:
    files, said = Files(tmp_path), list[str]()
    with serving(files.listening, said) as server:
        first = files.shown(server.port)
        assert files.shown(server.port) == first
        files.rotate()
        until(lambda: files.shown(server.port) != first)
    assert "The HTTP server's certificate was renewed." in said


def test_a_certificate_without_its_key_leaves_the_former_pair_in_force(tmp_path: Path) -> None:
    files, said = Files(tmp_path), list[str]()
    with serving(files.listening, said) as server:
        first = files.shown(server.port)
        files.rotate(key=False)
        until(lambda: bool(said))
        assert "The former certificate stays in force." in said[0]
        assert files.shown(server.port) == first
        files.rotate()
        until(lambda: files.shown(server.port) != first)


def test_over_tls_plain_http_gets_no_answer(tmp_path: Path) -> None:
    with serving(Files(tmp_path).listening) as server, pytest.raises(ConnectionError):
        get(server.port)


def test_a_certificate_that_cannot_be_used_ends_the_start(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.key.write_text("no key")
    with pytest.raises(UsageError, match="cannot be used"):
        HttpServer(files.listening, app(), lambda _text: None)
