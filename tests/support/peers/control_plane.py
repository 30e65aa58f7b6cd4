"""A real control plane on loopback: etcd, API server, scheduler, controllers, and real kubelets without containers."""

from __future__ import annotations

import json
import secrets
import ssl
import subprocess
import urllib.request
from pathlib import Path

from tests.support.peers.processes import Process, free_port, until

#: How long a silent node counts as healthy, here and in our simulator: shorter than usual, longer than a heartbeat.
NODE_GRACE_S = 14.0
CONTROLLERS = "kube-controller-manager"


class ControlPlane:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secrets.token_urlsafe(24)
        self.port, self._etcd_port = free_port(), free_port()
        self.ca = folder / "certs" / "apiserver.crt"
        self.kubeconfig = folder / "kubeconfig"
        self.processes: list[Process] = []
        self.kubelets: dict[str, Process] = {}

    def up(self) -> None:
        """All of it, ready for machines."""
        self.serve()
        self.control()

    def serve(self) -> None:
        """All but the controllers: machines join, pods are placed, and a silent node stays Ready."""
        (self.folder / "certs").mkdir(parents=True)
        self._start_etcd()
        self._start_api_server()
        until(self._ready, what="the API server is ready")
        self.kubeconfig.write_text(json.dumps(kubeconfig(self.port, self.token, self.ca)))
        self._start("kube-scheduler", *self._client())

    def control(self, grace_s: float = NODE_GRACE_S) -> None:
        """Start the controllers, anew if they run: how long a silent node counts as healthy is an option of theirs."""
        for running in [each for each in self.processes if each.name == CONTROLLERS]:
            running.end()
            self.processes.remove(running)
        self._start(
            CONTROLLERS,
            *self._client(),
            f"--service-account-private-key-file={self.folder}/certs/account.key",
            f"--node-monitor-grace-period={grace_s:.0f}s",
            "--node-monitor-period=1s",
            "--node-eviction-rate=10",
            "--secondary-node-eviction-rate=10",
        )

    def down(self) -> None:
        for process in [*tuple(self.kubelets.values()), *reversed(self.processes)]:
            process.end()

    def _client(self) -> tuple[str, ...]:
        return f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0"

    def start_kubelet(self, name: str) -> None:
        """One machine with a GPU."""
        self.kubelets[name] = Process(
            "kubemark",
            "--morph=kubelet",
            f"--name={name}",
            f"--kubeconfig={self.kubeconfig}",
            "--use-host-image-service=false",
            "--extended-resources=nvidia.com/gpu=1",
            "--kubelet-port=0",
            "--kubelet-read-only-port=0",
            log=self.folder / f"{name}.log",
        )

    def end_kubelet(self, name: str) -> None:
        self.kubelets.pop(name).end()

    def compact(self) -> None:
        """Forget all versions but the present one, as etcd is told to every five minutes."""
        revision = self._etcd("kv/range", {"key": "AA=="})["header"]["revision"]
        self._etcd("kv/compaction", {"revision": revision, "physical": True})

    def _start(self, name: str, *arguments: str) -> None:
        self.processes.append(Process(name, *arguments, log=self.folder / f"{name}.log"))

    def _start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{free_port()}"
        self._start(
            "etcd",
            f"--data-dir={self.folder}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )

    def _start_api_server(self) -> None:
        certs = self.folder / "certs"
        for words in (
            ["genrsa", "-out", f"{certs}/account.key", "2048"],
            ["rsa", "-in", f"{certs}/account.key", "-pubout", "-out", f"{certs}/account.pub"],
        ):
            subprocess.run(["openssl", *words], check=True, capture_output=True)
        (certs / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={certs}",
            f"--service-account-key-file={certs}/account.pub",
            f"--service-account-signing-key-file={certs}/account.key",
            "--service-account-issuer=https://127.0.0.1",
            f"--token-auth-file={certs}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--disable-admission-plugins=ServiceAccount",
            # Else its cache answers for versions that etcd has forgotten, and no watch is ever too old here.
            "--watch-cache-sizes=persistentvolumeclaims#0",
        )

    def _ready(self) -> bool:
        for process in self.processes:
            process.runs()
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/readyz", headers={"Authorization": f"Bearer {self.token}"}
        )
        try:
            trust = ssl.create_default_context(cafile=str(self.ca))
            return bool(urllib.request.urlopen(request, context=trust, timeout=5).read() == b"ok")
        except OSError:
            return False

    def _etcd(self, path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        url = f"http://127.0.0.1:{self._etcd_port}/v3/{path}"
        answer: dict[str, dict[str, str]] = json.load(
            urllib.request.urlopen(url, json.dumps(body).encode(), timeout=10)
        )
        return answer


def kubeconfig(port: int, token: str, ca: Path) -> dict[str, object]:
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(ca)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "peer", "cluster": cluster}],
        "users": [{"name": "peer", "user": {"token": token}}],
        "contexts": [{"name": "peer", "context": {"cluster": "peer", "user": "peer"}}],
        "current-context": "peer",
    }
