"""A TLS server on a free port of loopback that can stop listening and start again."""

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

#: How often the Date header of replies is renewed.
DATE_EVERY_S = 1.0


class TlsServer(uvicorn.Server):
    """uvicorn's server, but the process handles the signals."""

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
        self._stopping = asyncio.Event()
        self._socket = _listener(0)
        self.port = int(self._socket.getsockname()[1])

    async def run(self) -> None:  # type: ignore[override]
        await self.serve(sockets=[self._socket])

    async def main_loop(self) -> None:
        """As uvicorn's, but it ends at once when asked to."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), DATE_EVERY_S)

    def stop(self) -> None:
        self.should_exit = self.force_exit = True
        self._stopping.set()

    def stop_listening(self) -> None:
        """Behave like a machine that went away: every connection ends at once, and new ones are refused."""
        # Decision 0006: a client must see "connection refused", as with a machine that is away.
        for server in self.servers:
            server.close()
        self.servers = []
        self.abort_connections()

    def abort_connections(self) -> None:
        for connection in tuple(self.server_state.connections):
            transport = connection.transport
            if transport is not None:
                transport.abort()

    async def start_listening(self) -> None:
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
    """Return a listening socket.

    asyncio disables Nagle's algorithm only on sockets whose protocol is given as TCP. With it each reply takes 40 ms.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    return listener
