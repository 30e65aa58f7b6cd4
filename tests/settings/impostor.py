"""A door before a real (simulated) vCenter that may change its certificate, as one who stands in between would."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import Any

import trustme


class Impostor:
    """It passes on what it is sent, and keeps it. `heard` counts only what was said after the handshake."""

    def __init__(self, port: int, certificate: trustme.LeafCert) -> None:
        self._server_port = port
        self.certificate = certificate
        self.heard = b""
        self.met = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self.hang_up()
        # A thread that waits in accept is woken only so.
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def hang_up(self) -> None:
        """All connections end; the next one meets the certificate of the hour."""
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._meet, args=(client,), daemon=True).start()

    def _meet(self, raw: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.certificate.configure_cert(context)
        self.met += 1
        with contextlib.suppress(OSError):
            client = context.wrap_socket(raw, server_side=True)
            server = _unverified(self._server_port)
            self._open += [client, server]
            threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()
            while data := client.recv(1 << 16):
                self.heard += data
                server.sendall(data)


def _unverified(port: int) -> Any:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port)))


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
