"""What `vgpuctl status -o json` costs on a large estate, beside what govc and kubectl need to fetch the same.

10,000 VMs, 500 workers, 2,000 nodes, 10,000 pods, whole processes over TLS, in turn in one run. govc is asked for less
than we ask for: of all VMs the name, and the hosts' cards; not for the 500 workers' devices.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.lab import BIN, Lab
from vgpuctl.vsphere.property_filters import HOST_PATHS

ROUNDS = 5
RATIO, MEMORY_MIB = 1.5, 300


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="vgpuctl-bench-") as name:
        lab = Lab.up(Path(name) / "lab", "--scenario", "large")
        try:
            compare(lab)
        finally:
            lab.down()


def compare(lab: Lab) -> None:
    govc = Path(os.environ.get("PEERS_BIN", ".peers/bin")) / "govc"
    programs = {
        "vgpuctl status -o json": [str(BIN / "vgpuctl"), "status", "-o", "json"],
        "kubectl get nodes,pods -A -o json": [str(BIN / "kubectl"), "get", "nodes,pods", "-A", "-o", "json"],
    }
    if found := (str(govc) if govc.exists() else shutil.which("govc")):
        programs["govc object.collect, names of VMs"] = [found, "object.collect", "-json", "-type", "m", "/", "name"]
        programs["govc object.collect, hosts"] = [found, "object.collect", "-json", "-type", "h", "/", *HOST_PATHS]
    else:
        print("govc is not built (make test-peers builds it): the ratio is against kubectl alone.")
    took: dict[str, list[float]] = {what: [] for what in programs}
    memory = 0.0
    for _ in range(ROUNDS):
        for what, words in programs.items():
            seconds, mib = run(words, lab.env)
            took[what].append(seconds)
            memory = max(memory, mib) if what.startswith("vgpuctl") else memory
    middle = {what: statistics.median(seconds) for what, seconds in took.items()}
    for what, seconds in middle.items():
        print(f"{what:44}{seconds:8.2f} s", flush=True)
    ours, *theirs = middle.values()
    tell("ratio to all of them together", ours / sum(theirs), RATIO, "times")
    tell("memory at the most", memory, MEMORY_MIB, "MiB")


def run(words: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Seconds, and the most memory that this one process had."""
    began = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, f"{words[0]} ended with {status}"
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def tell(what: str, figure: float, bound: float, unit: str) -> None:
    print(f"{what:44}{figure:8.2f} {unit}   {'within' if figure <= bound else 'BEYOND'} {bound}", flush=True)


if __name__ == "__main__":
    main()
