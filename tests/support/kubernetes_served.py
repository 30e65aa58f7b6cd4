"""The simulated Kubernetes behind a real TLS server, with the real kubectl in front of it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import ssl
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trustme
import uvicorn

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.gathering import GatheringProtocol
from vgpuctl.sim.inventory import Durations, story
from vgpuctl.sim.kube.api import Api
from vgpuctl.sim.kube.app import KubernetesApp
from vgpuctl.sim.kube.world import KubernetesWorld

TOKEN = "a-token-for-tests"
# Virtual seconds in a real one: stories pass quickly, and nothing in a test sleeps.
SPEED = 20.0
KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"
JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any
    headers: dict[str, str]


class Served:
    """One world behind a real server in a thread of its own. Time stands still until `run_time` is called."""

    def __init__(self, folder: Path, ca: trustme.CA) -> None:
        self.clock = Clock(datetime.now(UTC))
        self.world = KubernetesWorld(self.clock, story(), Durations())
        for number in range(1, 5):
            self.world.boot(f"worker-{number}", 1)
        self.clock.advance_to(10)
        self.calls = Calls()
        self._ca_file = folder / "ca.pem"
        ca.cert_pem.write_to_path(str(self._ca_file))
        certificate = folder / "server.pem"
        ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
        # Named as TCP, or asyncio leaves Nagle's delay of 40 ms on each reply.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self.port = self._socket.getsockname()[1]
        self._kubeconfig = folder / "kubeconfig"
        self._kubeconfig.write_text(json.dumps(self._config()))
        app = KubernetesApp(Api(self.world), self.calls, TOKEN)
        self.api = app.api
        config = uvicorn.Config(
            app, http=GatheringProtocol, ssl_certfile=certificate, log_level="error", lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self.environment = {**os.environ, "KUBECONFIG": str(self._kubeconfig), "HOME": str(folder)}
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Served:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop.set_result(asyncio.get_running_loop())
        await self._server.serve(sockets=[self._socket])

    def within(self, action: Callable[[], Any]) -> Any:
        """Do something in the world's own thread."""
        done: Future[Any] = Future()
        loop = self._loop.result(10)

        def act() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

        loop.call_soon_threadsafe(act)
        return done.result(20)

    def wait(self, seconds: float) -> None:
        self.within(lambda: self.clock.advance_to(self.clock.now_s + seconds))

    @contextmanager
    def running_time(self) -> Iterator[None]:
        """Let virtual time run, for a client that waits for something."""
        loop = self._loop.result(10)
        task = asyncio.run_coroutine_threadsafe(self._tick(), loop)
        yield
        task.cancel()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        began, start = loop.time(), self.clock.now_s
        while True:
            self.clock.advance_to(start + (loop.time() - began) * SPEED)
            await asyncio.sleep(0.005)

    def kubectl(self, *arguments: str, fails: bool = False) -> str:
        command = [str(KUBECTL), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self._ca_file))
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=20)

    def first_record(self, path: str) -> bytes:
        """What comes first of an answer: no reading of TLS gives more than one record."""
        connection = self.connect()
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        assert isinstance(connection.sock, ssl.SSLSocket)
        record = connection.sock.read(1 << 14)
        connection.close()
        return record

    def http(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        connection = self.connect()
        payload = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        all_headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": JSON}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, payload, all_headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return Answer(response.status, json.loads(text) if text else None, dict(response.headers))

    def _config(self) -> dict[str, Any]:
        server = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(self._ca_file)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sim", "cluster": server}],
            "users": [{"name": "sim", "user": {"token": TOKEN}}],
            "contexts": [{"name": "sim", "context": {"cluster": "sim", "user": "sim"}}],
            "current-context": "sim",
        }
