"""How the simulators bear a large estate (the scenario `large`), as their clients see it: `make bench`.

It prints figures and asserts nothing, for seconds depend on the machine. What is compared with a real program is
measured side by side in the same run.
"""

from __future__ import annotations

import json
import os
import ssl
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim

from tests.support.lab import BIN, Lab
from tests.support.peers.control_plane import ControlPlane
from tests.support.vcenter import PC, content_of, view_filter

LEAVES = ["name", "runtime.powerState", "runtime.host", "config.uuid"]
DEVICES = [*LEAVES, "config.hardware.device"]
ROUNDS = 7
IDLE_S = 30


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="vgpuctl-bench-") as name:
        folder = Path(name)
        began = time.perf_counter()
        lab = Lab.up(folder / "lab", "--scenario", "large")
        try:
            show("start, until both servers answer", time.perf_counter() - began, "s")
            pid = int((lab.folder / "pid").read_text())
            idle(pid)
            vcenter(lab)
            kubernetes(lab, folder)
            show("memory at the most", memory_mib(pid), "MiB")
        finally:
            lab.down()


def idle(pid: int) -> None:
    before = cpu_s(pid)
    time.sleep(IDLE_S)
    show("idle, of one core", 100 * (cpu_s(pid) - before) / IDLE_S, "%")


def vcenter(lab: Lab) -> None:
    trust = ssl.create_default_context(cafile=lab.env["GOVC_TLS_CA_CERTS"])
    port = int(lab.env["GOVC_URL"].rsplit(":", 1)[1].split("/")[0])
    user, password = lab.env["GOVC_USERNAME"], lab.env["GOVC_PASSWORD"]
    client = SmartConnect(host="127.0.0.1", port=port, user=user, pwd=password, sslContext=trust)
    for what, paths in {"four leaves": LEAVES, "four leaves and the devices": DEVICES}.items():
        for which in ("first", "again"):
            found, seconds = timed(partial(inventory, client, paths))
            show(f"pyVmomi, {found} VMs, {what}, {which}", seconds, "s")
    Disconnect(client)


def inventory(client: Any, paths: list[str]) -> int:
    """One view, one filter, every page."""
    content = content_of(client)
    collector = content.propertyCollector
    page = collector.RetrievePropertiesEx([view_filter(content, {vim.VirtualMachine: paths})], PC.RetrieveOptions())
    found = len(page.objects)
    while page.token:
        page = collector.ContinueRetrievePropertiesEx(page.token)
        found += len(page.objects)
    return found


def kubernetes(lab: Lab, folder: Path) -> None:
    """kubectl against both in turn, so that what the machine does meanwhile meets both."""
    plane = ControlPlane(folder / "plane")
    real = (Path(os.environ.get("PEERS_BIN", ".peers/bin")) / "kube-apiserver").exists()
    configs = {"simulated": Path(lab.env["KUBECONFIG"])}
    try:
        if real:
            plane.up()
            configs["real"] = plane.kubeconfig
            copy_nodes(configs["simulated"], plane)
        else:
            print("kube-apiserver is not built (make test-peers builds it): nothing to compare with.")
        for words in (("get", "nodes"), ("get", "nodes", "-o", "json")):
            took: dict[str, list[float]] = {name: [] for name in configs}
            for _ in range(ROUNDS):
                for name, config in configs.items():
                    took[name].append(timed(partial(kubectl, config, *words))[1])
            middle = {name: statistics.median(seconds) for name, seconds in took.items()}
            for name, seconds in middle.items():
                show(f"kubectl {' '.join(words)}, {name}", seconds, "s")
            if real:
                show("  ratio", middle["simulated"] / middle["real"], "times")
    finally:
        plane.down()


def copy_nodes(source: Path, plane: ControlPlane) -> None:
    """By many connections: kubectl holds itself back."""
    nodes = json.loads(kubectl(source, "get", "nodes", "-o", "json"))["items"]
    for node in nodes:
        node["metadata"] = {key: node["metadata"][key] for key in ("name", "labels")}
        node["spec"].pop("taints", None)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda node: create(plane, node), nodes))
    assert len(kubectl(plane.kubeconfig, "get", "nodes", "-o", "name").split()) == len(nodes)


def create(plane: ControlPlane, node: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"}
    url = f"https://127.0.0.1:{plane.port}/api/v1/nodes"
    trust = ssl.create_default_context(cafile=str(plane.ca))
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(node).encode(), headers), context=trust).read()


def kubectl(config: Path, *words: str) -> str:
    done = subprocess.run([BIN / "kubectl", "--kubeconfig", config, *words], capture_output=True, text=True, check=True)
    return done.stdout


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return action(), time.perf_counter() - began


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def show(what: str, figure: float, unit: str) -> None:
    print(f"{what:<60}{figure:9.2f} {unit}", flush=True)


if __name__ == "__main__":
    main()
