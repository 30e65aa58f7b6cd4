"""A door before a real (simulated) vCenter that may change its certificate, as one who stands in between would."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from concurrent.futures import Future
from typing import Any

import trustme

CHUNK = 1 << 16
WITHIN_S = 20


class Impostor:
    """It passes on what it is sent, and keeps it. All in one loop: a TLS connection bears no two threads at once."""

    def __init__(self, port: int, certificate: trustme.LeafCert) -> None:
        self._vcenter_port = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._open: set[asyncio.StreamWriter] = set()
        self.heard = b""
        self.show(certificate)
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self._loop, self._ended, self.port = self._ready.result(WITHIN_S)

    def show(self, certificate: trustme.LeafCert) -> None:
        """From now on, to whoever connects anew."""
        self.certificate = certificate
        certificate.configure_cert(self._context)

    def hang_up(self) -> None:
        """All connections end; the next one meets the certificate of the hour."""
        asyncio.run_coroutine_threadsafe(self._abort(), self._loop).result(WITHIN_S)

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(WITHIN_S)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        ended = asyncio.Event()
        server = await asyncio.start_server(self._meet, "127.0.0.1", 0, ssl=self._context)
        self._ready.set_result((asyncio.get_running_loop(), ended, server.sockets[0].getsockname()[1]))
        await ended.wait()
        server.close()
        await self._abort()

    async def _abort(self) -> None:
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()

    async def _meet(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_connection("127.0.0.1", self._vcenter_port, ssl=_unverified())
        both = {to_client, to_server}
        self._open |= both
        await asyncio.gather(self._listen(client, to_server), _pass_on(server, to_client))
        self._open -= both

    async def _listen(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await client.read(CHUNK):
                self.heard += data
                to_server.write(data)
        to_server.close()


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK):
            sink.write(data)
    sink.close()


def _unverified() -> Any:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
