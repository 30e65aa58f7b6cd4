"""Where our requests go: below a server's path, or through a proxy; and an answer that breaks off."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.wire import Wire
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.model.errors import PassingError


class Server(ThreadingHTTPServer):
    """Answers everything, and notes the targets as they were written. `missing`: so many bytes less than it says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.targets: list[str] = []
        self.missing = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.targets.append(f"{self.command} {self.path}")
        body = b'{"kind": "Answer"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - self.server.missing])
        self.close_connection = bool(self.server.missing)

    do_PATCH = do_GET  # noqa: N815 - as the library calls it

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def client_of(folder: Path, server: str, **more: str) -> Client:
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": server, **more}}],
        "users": [{"name": "me", "user": {}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return Client(KubernetesSettings(kubeconfig=str(path)))


@pytest.mark.parametrize("before", ["", "/", "/k8s/clusters/c-1", "/k8s/clusters/c-1/"])
def test_a_server_may_be_below_a_path(server: Server, tmp_path: Path, before: str) -> None:
    client = client_of(tmp_path, f"{server.url}{before}")
    assert client.get("/api/v1/nodes", limit="5") == {"kind": "Answer"}
    client.patch("/api/v1/nodes/worker-1", {})
    below = before.rstrip("/")
    assert server.targets == [f"GET {below}/api/v1/nodes?limit=5", f"PATCH {below}/api/v1/nodes/worker-1"]


def test_a_proxy_of_the_kubeconfig_is_asked_for_the_whole_address(server: Server, tmp_path: Path) -> None:
    client = client_of(tmp_path, "http://elsewhere.invalid/k8s", **{"proxy-url": server.url})
    client.get("/api/v1/nodes")
    assert server.targets == ["GET http://elsewhere.invalid/k8s/api/v1/nodes"]


def test_so_is_one_of_the_environment(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    client = client_of(tmp_path, "http://elsewhere.invalid/k8s")
    client.get("/api/v1/nodes")
    assert server.targets == ["GET http://elsewhere.invalid/k8s/api/v1/nodes"]


def test_an_answer_that_breaks_off_is_none(server: Server, tmp_path: Path) -> None:
    client, server.missing = client_of(tmp_path, server.url), 4
    with pytest.raises(PassingError):
        client.get("/api/v1/nodes")
    with pytest.raises(PassingError):
        client.patch("/api/v1/nodes/worker-1", {})


def test_a_proxy_sees_no_token_of_a_server_behind_tls(tmp_path: Path) -> None:
    """It is asked for a tunnel, and this one hangs up then."""
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": "canary"}}],
    }

    def hang_up(_: Wire, connection: socket.socket, __: bytes) -> None:
        connection.close()

    with Wire(hang_up) as proxy:
        cluster = {"server": "https://elsewhere.invalid", "proxy-url": proxy.url}
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps({**config, "clusters": [{"name": "one", "cluster": cluster}]}))
        with pytest.raises(PassingError):
            Client(KubernetesSettings(kubeconfig=str(path))).get("/api/v1/nodes")
        assert proxy.asked[0].startswith(b"CONNECT elsewhere.invalid:443 ")
        assert b"canary" not in b"".join(proxy.asked)
