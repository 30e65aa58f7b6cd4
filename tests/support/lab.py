"""A laboratory: both simulated servers in a process of their own, and the real commands run against them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.forked import Command, Forked, run
from vgpuctl.sim.control.controls import Controls
from vgpuctl.sim.environment import parse_exports

COMMAND_WITHIN_S = 120
BIN = Path(sys.executable).parent
#: Whoever runs the tests may have these for an estate of their own. With the last, Python would compile ours anew at
#: each start; what pip installs, it has compiled.
FOREIGN = ("GOVC_", "VGPUCTL_", "VSPHERE_", "VMWARE_", "KUBE", "XDG_CONFIG_HOME", "PYTHONDONTWRITEBYTECODE")


@dataclass
class Ran:
    """How a command ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def ok(self) -> Ran:
        assert self.code == 0, f"{' '.join(self.words)} ended with {self.code}\n{self.out}\n{self.err}"
        return self


@dataclass
class Lab(Controls):
    folder: Path
    more_env: dict[str, str] = field(default_factory=dict)
    servers: Forked | None = None
    running: list[Forked] = field(default_factory=list)
    files: dict[Path, bytes] = field(default_factory=dict)

    @classmethod
    def up(cls, folder: Path, *options: str) -> Lab:
        """As `vgpuctl sim up --dir FOLDER`, forked; its output is in the folder's log, as that of detached ones."""
        lab = cls(folder)
        folder.mkdir(mode=0o700)
        with (folder / "log").open("w") as log:
            words = ("sim", "up", "--dir", str(folder), *options)
            lab.servers = Forked(Command(words=words, env=lab.env), stdout=log, stderr=log)
        deadline = time.monotonic() + COMMAND_WITHIN_S
        while not (folder / "pid").exists():
            assert lab.servers.poll() is None, f"the servers did not start:\n{(folder / 'log').read_text()}"
            assert time.monotonic() < deadline, "the servers did not start in time"
            time.sleep(0.005)
        lab.files = lab._files_now()
        return lab

    def begin_again(self) -> bool:
        """As it was after `up`; False where only new servers can be that."""
        for command in self.running:
            if command.poll() is None:
                command.kill()
                command.wait(COMMAND_WITHIN_S)
        self.running, self.more_env = [], {}
        if self.servers is None or self.servers.poll() is not None or not (self.folder / "pid").exists():
            return False
        self.reset()
        now = self._files_now()
        for path in now.keys() - self.files.keys():
            path.unlink()
        for path, content in self.files.items():
            if now.get(path) != content:
                path.write_bytes(content)
        return True

    def _files_now(self) -> dict[Path, bytes]:
        """Those that a test may change; kubectl's cache is no such file."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and ".kube" not in path.parts)
        return {path: path.read_bytes() for path in found if path.name != "log"}

    def down(self) -> None:
        """Also servers that a test has started as people do, after these were killed."""
        if self.servers is not None and self.servers.poll() is None:
            self.servers.send_signal(signal.SIGTERM)
            self.servers.wait(COMMAND_WITHIN_S)
        if (self.folder / "pid").exists():
            self.vgpuctl("sim", "down", "--dir", str(self.folder)).ok()

    @property
    def env(self) -> dict[str, str]:
        path = self.folder / "env"
        leads_here = parse_exports(path.read_text()) if path.exists() else {}
        # Lines, no colour, and a Lease that a killed holder leaves behind only for a moment.
        given = {"NO_COLOR": "1", "COLUMNS": "120", "VGPUCTL_LEASE_SECONDS": "1", "HOME": str(self.folder)}
        own = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        return {**own, **given, **leads_here, **self.more_env}

    def program(self, name: str, *words: str, timeout: float = COMMAND_WITHIN_S) -> Ran:
        """Another's program, such as kubectl or govc."""
        found = BIN / name
        path = str(found) if found.exists() else shutil.which(name) or name
        done = subprocess.run(
            [path, *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Ran((name, *words), done.returncode, done.stdout, done.stderr)

    def vgpuctl(self, *words: str, **streams: Any) -> Ran:
        """`first`, `stdout`, `stderr`: as for Command and Forked."""
        command = Command(words=words, env=self.env, first=streams.pop("first", ()))
        return Ran(("vgpuctl", *words), *run(command, COMMAND_WITHIN_S, **streams))

    def killed_after(self, nth: int, *words: str) -> int:
        """The command's exit code, after SIGKILL right after its nth write unless it ended before."""
        return self.vgpuctl(*words, first=("tests.support.killed", "kill_after", str(nth))).code

    def start(self, *words: str, **streams: Any) -> Forked:
        """A command that runs while the test goes on."""
        self.running.append(Forked(Command(words=words, env=self.env), **streams))
        return self.running[-1]

    def kubectl(self, *words: str) -> Ran:
        return self.program("kubectl", *words)

    def json(self, name: str, *words: str) -> Any:
        ran = self.vgpuctl(*words, "-o", "json") if name == "vgpuctl" else self.program(name, *words, "-o", "json")
        return json.loads(ran.ok().out)

    def status(self) -> dict[str, Any]:
        """The workers by name, as vgpuctl shows them."""
        return {worker["name"]: worker for worker in self.json("vgpuctl", "status")["workers"]}

    def awake(self) -> set[str]:
        return {name for name, worker in self.status().items() if worker["power"] == "poweredOn"}

    def get(self, path: str) -> Any:
        """What Kubernetes answers, without a program in between."""
        config = json.loads((self.folder / "kubeconfig").read_text())
        server, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
        request = urllib.request.Request(f"{server}{path}", headers={"Authorization": f"Bearer {token}"})
        context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        with urllib.request.urlopen(request, timeout=COMMAND_WITHIN_S, context=context) as answer:
            return json.load(answer)

    def pods(self) -> list[dict[str, Any]]:
        """Those of the namespace default."""
        found: list[dict[str, Any]] = self.get("/api/v1/namespaces/default/pods")["items"]
        return found

    def nodes(self) -> dict[str, Any]:
        """By name."""
        return {item["metadata"]["name"]: item for item in self.get("/api/v1/nodes")["items"]}

    def holder(self) -> str:
        """Of the acting Lease; "" for nobody."""
        lease = self.get("/apis/coordination.k8s.io/v1/namespaces/vgpuctl/leases/vgpuctl")
        return str(lease["spec"].get("holderIdentity") or "")

    def hold_the_lease(self, holder: str, *, seconds: int) -> None:
        """As another instance that was seen to renew it just now."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "acquireTime": now, "renewTime": now}
        metadata = {"name": "vgpuctl", "namespace": "vgpuctl"}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        path = self.folder / "lease.json"
        path.write_text(json.dumps(lease))
        # It exists already if anything was written before.
        self.kubectl("create", "namespace", "vgpuctl")
        self.kubectl("delete", "lease", "vgpuctl", "-n", "vgpuctl", "--ignore-not-found").ok()
        self.kubectl("create", "--validate=false", "-f", str(path)).ok()

    def writes(self) -> dict[str, int]:
        reads = ("GET ", "Login", "Logout", "Retrieve", "Create", "Destroy", "WaitFor", "Fetch", "Continue")
        counted = self.calls()
        return {name: n for server in counted.values() for name, n in server.items() if not name.startswith(reads)}

    def daytime(self) -> Lab:
        """Provisioned, labelled, and the day's workers awake."""
        self.vgpuctl("provision", "--yes").ok()
        self.vgpuctl("label-nodes").ok()
        self.vgpuctl("switch", "day", "--yes").ok()
        self.settle()
        return self

    def settle(self) -> None:
        """Until the pods that may run do: controllers work a moment after a switch has ended."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            placed = [pod for pod in self.pods() if pod["spec"].get("nodeName")]
            gateways = [pod for pod in placed if pod["metadata"]["name"].startswith("gateway")]
            if len(gateways) == 3 and all(_running(pod) for pod in placed):
                return
            time.sleep(0.05)
        raise AssertionError("the pods did not come to rest")


def _running(pod: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", ())}
    return "deletionTimestamp" not in pod["metadata"] and conditions.get("Ready") == "True"
