"""Both servers in one process and one event loop, over one world whose clock is driven in real time."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import trustme
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.files import Access, write_all
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.app import kubernetes_app
from vgpuctl.sim.kube.world import KubernetesWorld
from vgpuctl.sim.vcenter.app import vcenter_app
from vgpuctl.sim.vcenter.estate import Estate

USER = "administrator@vsphere.local"
READER = "readonly@vsphere.local"
LONGEST_NAP_S = 3600.0


@dataclass(slots=True)
class Simulation:
    """One world and the two servers over it."""

    folder: Path
    inventory: Inventory
    durations: Durations
    calls: Calls = field(default_factory=Calls)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    reader_password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    async def serve(self) -> None:
        """Until a signal ends it. The pid is written when both servers answer, and taken away at the end."""
        clock = Clock(datetime.now(UTC))
        kubernetes = KubernetesWorld(clock, self.inventory, self.durations)
        estate = Estate(clock, self.inventory, self.durations, kubernetes)
        authority = trustme.CA()
        context = authority.issue_cert("127.0.0.1", "localhost")
        driver = Driver(clock)
        center = vcenter_app(estate, self.calls, USER, self.password, reader=(READER, self.reader_password))
        vcenter = _Server(driver.before(center), context)
        cluster = _Server(
            driver.before(self._with_control(kubernetes_app(kubernetes, self.calls, self.token))), context
        )
        servers = [vcenter, cluster]
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _end, servers, center)
        serving = [asyncio.create_task(server.run()) for server in servers]
        driving = asyncio.create_task(driver.drive())
        await _until_started(servers, serving)
        access = Access(
            vcenter_port=vcenter.port,
            kubernetes_port=cluster.port,
            user=USER,
            password=self.password,
            reader=(READER, self.reader_password),
            token=self.token,
            ca_pem=authority.cert_pem.bytes(),
        )
        write_all(self.folder, self.inventory, access)
        pid = self.folder / "pid"
        pid.write_text(f"{os.getpid()}\n")
        try:
            await asyncio.gather(*serving)
        finally:
            driving.cancel()
            pid.unlink(missing_ok=True)

    def _with_control(self, app: Starlette) -> Starlette:
        """The folder's owner may also ask what was called; nobody else can, for the token is the cluster's."""
        return Starlette(routes=[Route("/sim/calls", self._calls, methods=["GET", "DELETE"]), Mount("/", app)])

    async def _calls(self, request: Request) -> Response:
        given = request.headers.get("authorization", "")
        if not secrets.compare_digest(given, f"Bearer {self.token}"):
            return JSONResponse({"error": "not allowed"}, status_code=401)
        counted = self.calls.as_dict()
        if request.method == "DELETE":
            self.calls.reset()
        return JSONResponse(counted)


class _Server(uvicorn.Server):
    """One TLS server on a free port of loopback; signals are handled by the process, not by it."""

    def __init__(self, app: ASGIApp, certificate: trustme.LeafCert) -> None:
        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=75,
            ws="none",
        )
        super().__init__(config)
        config.load()
        config.ssl = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(config.ssl)
        self._socket = _free_port()
        self.port = int(self._socket.getsockname()[1])

    async def run(self) -> None:  # type: ignore[override]
        await self.serve(sockets=[self._socket])

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _free_port() -> socket.socket:
    """asyncio switches Nagle's delay off only where the socket says that it is TCP; else each reply takes 40 ms."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    return listener


def _end(servers: list[_Server], center: Starlette) -> None:
    """Open waits are ended first: a server does not end before its answers have."""
    center.state.center.sessions.end_all()
    for server in servers:
        server.should_exit = True
        server.force_exit = True


async def _until_started(servers: list[_Server], serving: list[asyncio.Task[None]]) -> None:
    while not all(server.started for server in servers):
        for task in serving:
            if task.done():
                task.result()
                raise RuntimeError("a server ended before it began")
        await asyncio.sleep(0.01)


class Driver:
    """Lets the world's time follow real time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = asyncio.get_running_loop().time() - clock.now_s

    def before(self, app: ASGIApp) -> ASGIApp:
        """The same server, but no request finds the world in the past."""

        async def punctual(scope: Scope, receive: Receive, send: Send) -> None:
            self._clock.advance_to(self._now_s())
            await app(scope, receive, send)

        return punctual

    async def drive(self) -> None:
        """Sleep until something is due, or something new is planned."""
        news = asyncio.Event()
        self._clock.on_new_timer = news.set
        while True:
            self._clock.advance_to(self._now_s())
            news.clear()
            due = self._clock.next_due_s()
            nap = LONGEST_NAP_S if due is None else max(0.0, due - self._now_s())
            try:
                await asyncio.wait_for(news.wait(), timeout=nap)
            except TimeoutError:
                continue

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time() - self._began
