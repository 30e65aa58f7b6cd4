"""How much longer a switch takes than its longest chain, beside the shell script that people write today: `make bench`.

All that takes time is injected, there are no budgets and no limits. So a switch could end after one drain, one suspend,
one resume and one return: what it takes beyond that is ours. Times are those of a witness, a watcher of its own, which
sees the first write (the Lease) and the last uncordon. It prints bounds and asserts nothing, for seconds depend on the
machine: nights and days in turn, the middle one and all of them, and how fast the processor was meanwhile. In virtual
time the same is a test.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from urllib3.exceptions import HTTPError

from tests.support.lab import BIN, Lab
from tests.support.unlike_hosts import chain_s, night_of, took_s
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client

DRAIN_S, SUSPEND_S, RESUME_S, BACK_S = 2.0, 3.0, 4.0, 1.0
CHAIN_S = DRAIN_S + SUSPEND_S + RESUME_S + BACK_S
#: A kubelet renews its Lease after one such time, and posts its status after another.
INJECTED = (f"pod-end={DRAIN_S}s", f"suspend={SUSPEND_S}s", f"power-on={RESUME_S}s", f"kubelet={BACK_S / 2}s")
AT_ONCE = (
    "pod-end=10ms",
    "suspend=10ms",
    "power-on=10ms",
    "kubelet=10ms",
    "guest-boot=10ms",
    "gpu-stack=10ms",
    "tasks-per-host=1000",
)
#: A night and a day follow each other within seconds: what a sleep costs that Kubernetes did not notice is not ours.
UNLIKE_LIFE = ("report=0s",)
OURS = "/api/v1/namespaces/vgpuctl/configmaps", "/apis/coordination.k8s.io/v1/namespaces/vgpuctl/leases"
NODES = "/api/v1/nodes"
ROUNDS = 5

SCRIPT = """
set -e
for node in $LEAVING; do
  kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --force
  govc vm.power -suspend "$node"
done
for node in $COMING; do
  govc vm.power -on "$node"
  kubectl wait --for=condition=Ready "node/$node" --timeout=10m
  kubectl uncordon "$node"
  kubectl label node "$node" vgpu.type=v100-16q-16GB --overwrite
done
"""


class Witness:
    """Hears when nodes and what is ours are written to. It reads what it heard only afterwards: processors are few, and
    a switch is not to wait for who looks on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._heard: dict[str, list[tuple[float, bytes]]] = {}
        self._nodes: dict[str, tuple[bool, str]] = {}

    @classmethod
    def of(cls, lab: Lab) -> Witness:
        witness = cls(Client(KubernetesSettings(kubeconfig=lab.env["KUBECONFIG"])))
        for path in (NODES, *OURS):
            listed = witness._client.get(path)
            if path == NODES:
                witness._nodes = {node["metadata"]["name"]: _said(node) for node in listed["items"]}
            witness._heard[path] = []
            version = listed["metadata"]["resourceVersion"]
            threading.Thread(target=witness._listen, args=(path, version), daemon=True).start()
        return witness

    def _listen(self, path: str, version: str) -> None:
        """Until the servers are ended."""
        with suppress(HTTPError):
            for chunk in self._client.watch(path, version, 240).stream(amt=None):
                self._heard[path].append((time.perf_counter(), chunk))

    def _writes(self) -> Iterator[tuple[float, bool]]:
        """When each was heard of, and whether it was an uncordon. What a kubelet posts about its node is not ours."""
        for path in OURS:
            yield from ((when, False) for when, _ in _events(self._heard[path]))
        for when, node in _events(self._heard[NODES]):
            name, now = node["metadata"]["name"], _said(node)
            before = self._nodes.get(name, (False, ""))
            self._nodes[name] = now
            if before != now:
                yield when, before[0] and not now[0]

    @property
    def took_s(self) -> float:
        """From the first write to the last uncordon."""
        writes = list(self._writes())
        return max(when for when, uncordon in writes if uncordon) - min(when for when, _ in writes)


def _events(heard: list[tuple[float, bytes]]) -> Iterator[tuple[float, Any]]:
    """Objects, with the time at which each had been heard to its end."""
    rest = b""
    for when, chunk in heard:
        *lines, rest = (rest + chunk).split(b"\n")
        events = (json.loads(line) for line in lines if line)
        yield from ((when, event["object"]) for event in events if event["type"] != "BOOKMARK")


def _said(node: Any) -> tuple[bool, str]:
    meta = node["metadata"]
    unschedulable = bool(node["spec"].get("unschedulable"))
    return unschedulable, json.dumps([unschedulable, meta.get("labels"), meta.get("annotations")])


def by_day(folder: Path, hosts: int, cards: int) -> Lab:
    """The night's workers have slept once already, so that they will be resumed; the gateway has no budget.

    The Lease lasts as long as it does for users: tests have one that they need not wait for, but one of a second is
    soon too old to act on.
    """
    lab = Lab.up(folder, "--hosts", str(hosts), "--cards", str(cards))
    lab.more_env = {"VGPUCTL_LEASE_SECONDS": "15"}
    pace(lab, *AT_ONCE, *UNLIKE_LIFE)
    lab.daytime()
    for shift in ("night", "day"):
        lab.vgpuctl("switch", shift, "--yes").ok()
    lab.kubectl("delete", "poddisruptionbudget", "--all").ok()
    lab.settle()
    pace(lab, *INJECTED)
    return lab


def pace(lab: Lab, *durations: str) -> None:
    lab.vgpuctl("sim", "set", "durations", "--dir", str(lab.folder), *durations).ok()


def measured(lab: Lab, do: Callable[[], Any]) -> tuple[float, float]:
    """The way from first write to last uncordon, and the whole process."""
    witness, began = Witness.of(lab), time.perf_counter()
    do()
    whole = time.perf_counter() - began
    return witness.took_s, whole


def switched(lab: Lab, shift: str) -> None:
    lab.vgpuctl("switch", shift, "--yes").ok()


def switches(folder: Path, hosts: int, cards: int) -> tuple[list[float], list[float]]:
    """Their ways, and their whole processes."""
    lab, ways, wholes, loops = by_day(folder, hosts, cards), list[float](), list[float](), [loop_s()]
    try:
        for number in range(ROUNDS):
            shift = "day" if number % 2 else "night"
            way, whole = measured(lab, partial(switched, lab, shift))
            ways.append(way)
            wholes.append(whole)
            loops.append(loop_s())
    finally:
        lab.down()
    print(f"{'(a fixed loop, before, between and after)':<50}{listed(loops)} s", flush=True)
    return ways, wholes


def script(folder: Path, govc: str) -> tuple[float, float]:
    lab = by_day(folder, 1, 1)
    given = {"LEAVING": "worker-1 worker-2 worker-3 worker-4", "COMING": "worker-5"}
    lab.more_env |= {"PATH": f"{BIN}:{Path(govc).parent}:{os.environ['PATH']}", **given}
    try:
        return measured(lab, lambda: lab.program("sh", "-c", SCRIPT).ok())
    finally:
        lab.down()


def found_govc() -> str | None:
    built = Path(os.environ.get("PEERS_BIN", ".peers/bin")) / "govc"
    return str(built.resolve()) if built.exists() else shutil.which("govc")


def main() -> None:
    print(f"The longest chain: {CHAIN_S:.0f} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="vgpuctl-bench-") as name:
        folder = Path(name)
        ways, wholes = switches(folder / "one", 1, 1)
        tell("5 workers, first write to last uncordon", ways, 1.05)
        tell("5 workers, whole process", wholes, 1.15)
        if govc := found_govc():
            theirs, _ = script(folder / "script", govc)
            tell("5 workers, the sequential shell script", [theirs])
            times = theirs / statistics.median(ways)
            print(f"{'the script takes':<50}{times:7.2f} times as long as vgpuctl", flush=True)
        else:
            print("govc is not built (make test-peers builds it): the shell script is not run.")
        ways, _ = switches(folder / "racks", 8, 4)
        tell("8 hosts × 4 cards, first write to last uncordon", ways, 1.10)
    world = night_of(64, 4)
    assert chain_s(world) == CHAIN_S
    world.run()
    tell("64 hosts × 4 cards, in virtual time", [took_s(world)], 1.10)


def loop_s() -> float:
    """What exceeds the chain is processor time: two runs compare only beside how long a fixed piece of work took."""
    began = time.process_time()
    {str(number): (number,) for number in range(200_000)}
    return time.process_time() - began


def tell(what: str, seconds: list[float], bound: float | None = None) -> None:
    middle = statistics.median(seconds)
    ratio = middle / CHAIN_S
    verdict = "" if bound is None else f"   ≤ {bound:.2f}: {'met' if ratio <= bound else 'NOT met'}"
    each = f"   the middle of {listed(seconds)}" if len(seconds) > 1 else ""
    print(f"{what:<50}{middle:7.2f} s {ratio:7.3f}{verdict}{each}", flush=True)


def listed(seconds: list[float]) -> str:
    return " ".join(f"{each:.2f}" for each in seconds)


if __name__ == "__main__":
    main()
