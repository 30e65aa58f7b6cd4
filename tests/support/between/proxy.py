"""The adversary over real HTTP: a TLS proxy before each server of an estate, and the environment that leads there."""

from __future__ import annotations

import json
import queue
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Self

import trustme

from tests.support.between.adversary import Adversary, HangUp
from tests.support.between.messages import KUBERNETES, VCENTER, Asked, Lines, Reply, read_asked
from tests.support.wire import Wire
from vgpuctl.testing import Estate

#: Headers that belong to one connection, and what the client of the proxy gets another of.
_OF_A_CONNECTION = {"connection", "content-length", "host", "transfer-encoding", "accept-encoding"}


class Proxies:
    """`adversary`: the present one. When another replaces it, its connections end."""

    def __init__(self, estate: Estate, folder: Path) -> None:
        self._estate, self._folder = estate, folder
        self.adversary = Adversary(0)
        self.adversary.rest()
        self._ca = trustme.CA()
        self._open: set[socket.socket] = set()
        self._wires = ExitStack()

    def __enter__(self) -> Self:
        self._ports = {server: self._wires.enter_context(self._wire(server)).port for server in (KUBERNETES, VCENTER)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.adversary.rest()
        self._hang_up()
        self._wires.__exit__(kind, error, at)

    @property
    def env(self) -> Mapping[str, str]:
        """The estate's environment, but through the proxies."""
        ca = self._folder / "proxy-ca.pem"
        self._ca.cert_pem.write_to_path(str(ca))
        config = json.loads(self._estate.kubeconfig.read_text())
        port = self._ports[KUBERNETES]
        config["clusters"][0]["cluster"] = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(ca)}
        kubeconfig = self._folder / "proxy-kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        through = {"GOVC_URL": f"https://127.0.0.1:{self._ports[VCENTER]}/sdk", "GOVC_TLS_CA_CERTS": str(ca)}
        return {**self._estate.environment(), **through, "KUBECONFIG": str(kubeconfig)}

    def meet(self, adversary: Adversary) -> None:
        self.adversary = adversary
        self._hang_up()

    def _hang_up(self) -> None:
        for each in tuple(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _wire(self, server: str) -> Wire:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert("127.0.0.1").configure_cert(tls)

        def script(_: Wire, client: socket.socket, data: bytes) -> None:
            asked = read_asked(server, data)
            assert asked is not None
            try:
                for piece in self.adversary.carried(asked, self._answer):
                    client.sendall(piece)
            except (HangUp, HTTPException) as error:
                raise ConnectionAbortedError from error

        return Wire(script, tls)

    def _answer(self, asked: Asked) -> Reply | Lines:
        """What the real server answers, over a connection of its own."""
        port = self._estate.kubernetes_port if asked.server == KUBERNETES else self._estate.vcenter_port
        context = ssl.create_default_context(cafile=str(self._estate.ca))
        connection = HTTPSConnection("127.0.0.1", port, context=context)
        headers = {name: value for name, value in asked.headers.items() if name not in _OF_A_CONNECTION}
        connection.request(asked.method, asked.target, asked.body or None, headers)
        found: socket.socket = connection.sock
        self._open.add(found)
        response = connection.getresponse()
        if asked.is_watch and response.status < 300:
            return self._lines(response, found)
        try:
            kept = ((name, value) for name, value in response.getheaders() if name.lower() not in _OF_A_CONNECTION)
            return Reply(response.status, response.read(), tuple(kept))
        finally:
            self._open.discard(found)
            connection.close()

    def _lines(self, response: HTTPResponse, connection: socket.socket) -> Lines:
        coming: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

        def read() -> None:
            with suppress(OSError, HTTPException, ValueError):
                while line := response.readline():
                    coming.put(line)
            coming.put(None)

        threading.Thread(target=read, daemon=True).start()

        def take(within_s: float) -> list[bytes] | None:
            try:
                line = coming.get(timeout=within_s)
            except queue.Empty:
                return []
            return None if line is None else [line]

        def close() -> None:
            self._open.discard(connection)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

        return Lines(take, close)


def shorten() -> None:
    """Called in each process before its command: a stream pauses for a moment only, so that a test is short."""
    from vgpuctl.cli import common  # noqa: PLC0415
    from vgpuctl.wire import retries  # noqa: PLC0415

    retries.FIRST_PAUSE_S, retries.LONGEST_PAUSE_S = 0.2, 0.5
    common.PAUSE_S = 0.05
