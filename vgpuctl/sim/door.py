"""One TLS server on a free port of loopback, whose door can be shut and opened again."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import trustme
import uvicorn
from starlette.types import ASGIApp

from vgpuctl.sim.coalesced_writes import CoalescingProtocol

#: How often the Date in answers is renewed.
DATE_EVERY_S = 1.0


class Door(uvicorn.Server):
    """Signals are handled by the process, not by it."""

    def __init__(self, app: ASGIApp, certificate: trustme.LeafCert) -> None:
        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            http=CoalescingProtocol,
            lifespan="off",
            proxy_headers=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=75,
            ws="none",
        )
        super().__init__(config)
        config.load()
        config.ssl = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(config.ssl)
        self._ending = asyncio.Event()
        self._socket = _listener(0)
        self.port = int(self._socket.getsockname()[1])

    async def run(self) -> None:  # type: ignore[override]
        await self.serve(sockets=[self._socket])

    async def main_loop(self) -> None:
        """As uvicorn's, but its end is heard at once."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), DATE_EVERY_S)

    def end(self) -> None:
        self.should_exit = self.force_exit = True
        self._ending.set()

    def shut(self) -> None:
        """As when the machine goes away: every connection ends at once, a new one is refused."""
        for server in self.servers:
            server.close()
        self.servers = []
        self.hang_up()

    def hang_up(self) -> None:
        for connection in tuple(self.server_state.connections):
            transport = connection.transport
            if transport is not None:
                transport.abort()

    async def open(self) -> None:
        if not self.servers:
            loop = asyncio.get_running_loop()
            listener = _listener(self.port)
            self.servers = [await loop.create_server(self._connection, sock=listener, ssl=self.config.ssl)]

    def _connection(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listener(port: int) -> socket.socket:
    """asyncio switches Nagle's delay off only where the socket says that it is TCP; else each reply takes 40 ms."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    return listener
