"""Our two simulators behind real servers in a thread of their own, in real time."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trustme
import uvicorn
from starlette.types import ASGIApp

from tests.support.peers.control_plane import NODE_GRACE_S
from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.driver import Driver
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.api import Api
from vgpuctl.sim.kube.app import KubernetesApp
from vgpuctl.sim.kube.world import KubernetesWorld
from vgpuctl.sim.vcenter.app import vcenter_app
from vgpuctl.sim.vcenter.center import Center
from vgpuctl.sim.vcenter.estate import Estate
from vgpuctl.sim.vcenter.sessions import Account, Sessions

USER = "administrator@vsphere.local"


class OurServers:
    def __init__(self, folder: Path, inventory: Inventory, durations: Durations) -> None:
        self.password, self.token = secrets.token_urlsafe(12), secrets.token_urlsafe(24)
        self.clock = Clock(datetime.now(UTC))
        self.kubernetes = KubernetesWorld(self.clock, inventory, replace(durations, node_grace_s=NODE_GRACE_S))
        self._estate = Estate(self.clock, inventory, durations, self.kubernetes)
        self.center = Center(self._estate, Sessions([Account(USER, self.password)], self.clock))
        self._sockets = [_listener(), _listener()]
        self.vcenter_port, self.kubernetes_port = (one.getsockname()[1] for one in self._sockets)
        authority = trustme.CA()
        self.ca, self._certificate = folder / "ca.pem", folder / "server.pem"
        authority.cert_pem.write_to_path(str(self.ca))
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(self._certificate))
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def up(self) -> None:
        self._thread.start()
        self._loop.result(20)

    def down(self) -> None:
        self._ended.set()
        self._thread.join(20)

    def within(self, action: Callable[[], Any]) -> Any:
        """Do something in the world's own thread."""

        async def act() -> Any:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self._loop.result()).result(20)

    async def _serve(self) -> None:
        driver = Driver(self.clock)
        calls = Calls()
        center = vcenter_app(self.center, calls)
        apps: list[ASGIApp] = [center, KubernetesApp(Api(self.kubernetes), calls, self.token)]
        servers = [self._server(driver, app) for app in apps]
        tasks = [
            asyncio.create_task(server.serve(sockets=[listener]))
            for server, listener in zip(servers, self._sockets, strict=True)
        ]
        driver.drive()
        while not all(server.started for server in servers):
            await asyncio.sleep(0.01)
        self._loop.set_result(asyncio.get_running_loop())
        while not self._ended.is_set():
            await asyncio.sleep(0.05)
        self.center.sessions.end_all()
        for server in servers:
            server.should_exit = server.force_exit = True
        await asyncio.gather(*tasks)

    def _server(self, driver: Driver, app: ASGIApp) -> uvicorn.Server:
        return uvicorn.Server(
            uvicorn.Config(
                driver.before(app),
                ssl_certfile=self._certificate,
                log_level="critical",
                lifespan="off",
                timeout_keep_alive=75,
            )
        )


def _listener() -> socket.socket:
    """Named as TCP, or asyncio leaves Nagle's delay of 40 ms on each reply."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener
