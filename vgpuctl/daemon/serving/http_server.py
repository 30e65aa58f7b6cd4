"""A thread with uvicorn's server. Whatever happens in it, the daemon's loop goes on."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from vgpuctl.basics.changing_files import fingerprint_of
from vgpuctl.model.errors import UsageError, with_place
from vgpuctl.settings.listening import Listening

#: How often certificates and connections are looked at.
TICK_S = 0.5
#: Prometheus and probes need a few. Beyond, a reader gets 503.
CONNECTIONS = 64
#: The longest life of a connection: uvicorn sets no limit to one that never finishes its request.
CONNECTION_S = 30.0
ENDS_WITHIN_S = 1.0


class HttpServer:
    """Listens from its making, answers from `start` to `stop`. UsageError if it cannot listen there."""

    def __init__(self, listening: Listening, app: ASGIApp, say: Callable[[str], None]) -> None:
        self._say = say
        self._certificate = Certificate(listening, say) if listening.certificate else None
        self._socket = _listener(listening)
        self.port = int(self._socket.getsockname()[1])
        self._server = _Server(app, self._certificate)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End within a second, whatever is under way."""
        self._server.stop()
        if self._thread.is_alive():
            self._thread.join(ENDS_WITHIN_S)
        self._socket.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._server.serve(sockets=[self._socket]))
        except BaseException as error:
            with suppress(Exception):
                self._say(f"The HTTP server has ended: {with_place(error)}. The daemon goes on.")


class Certificate:
    """A certificate and its key from files. New connections get the newest pair that fits together."""

    def __init__(self, listening: Listening, say: Callable[[str], None]) -> None:
        self._paths, self._say = (str(listening.certificate), str(listening.key)), say
        self._seen = self._fingerprint()
        self.context = _context(*self._paths)

    def renew(self) -> None:
        """Read the files again if they have changed. A pair that cannot be used leaves the former one in force."""
        if (seen := self._fingerprint()) == self._seen:
            return
        self._seen = seen
        try:
            # OpenSSL keeps the new certificate with the old key if these do not fit, so another context tries first.
            _context(*self._paths)
            self.context.load_cert_chain(*self._paths)
        except UsageError as error:
            self._say(f"{error.message} The former certificate stays in force.")
        else:
            self._say("The HTTP server's certificate was renewed.")

    def _fingerprint(self) -> tuple[object, ...]:
        return tuple(fingerprint_of(Path(path)) for path in self._paths)


class _Server(uvicorn.Server):
    """uvicorn's server, but the daemon handles the signals."""

    def __init__(self, app: ASGIApp, certificate: Certificate | None) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="critical",
            access_log=False,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=0,
        )
        super().__init__(config)
        config.load()
        self._certificate = certificate
        config.ssl = certificate.context if certificate else None
        self._since: dict[Any, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def stop(self) -> None:
        """End at once. It may be called from any thread, also before the server has begun."""
        self.should_exit = self.force_exit = True
        if self._loop is not None and self._stopping is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def main_loop(self) -> None:
        """As uvicorn's, but it ends at once when asked to, and looks after certificates and connections."""
        self._stopping = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            if self._certificate is not None:
                self._certificate.renew()
            self._end_old_connections(self._loop.time())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), TICK_S)

    def _end_old_connections(self, now_s: float) -> None:
        there = self.server_state.connections
        self._since = {each: self._since.get(each, now_s) for each in there}
        for connection, since_s in self._since.items():
            if now_s - since_s > CONNECTION_S and connection.transport is not None:
                connection.transport.abort()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A key with a passphrase would ask on the terminal for it.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise UsageError(f"The certificate {certificate} and its key {key} cannot be used: {error}.") from None
    return context


def _listener(listening: Listening) -> socket.socket:
    """Return a listening socket.

    asyncio disables Nagle's algorithm only on sockets whose protocol is given as TCP.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(CONNECTIONS)
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise UsageError(
            f"The HTTP server cannot listen on {listening.host}:{listening.port}: {error.strerror or error}.",
            hint="Choose another address with --listen.",
        ) from None
    return made
