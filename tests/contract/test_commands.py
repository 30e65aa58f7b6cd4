"""The kubectl and govc commands of our pages, and those that people type next: ours and the real say the same."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleets import QUARTER
from tests.support.paths import PAGES, ROOT
from tests.support.peers import remaining
from tests.support.peers.clusters import Cluster, budget, deployment
from tests.support.peers.processes import program
from tests.support.peers.vcenters import Client, Vcenter
from tests.support.vcenter import attach

#: What differs from run to run and from machine to machine, and what it becomes.
VARYING = (
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
    (r"\b\d{1,3}(\.\d{1,3}){3}\b", "<address>"),
    (r"\b\d+h\d+m\d+s\b|\b(\d+[dhms]){1,2}\b", "<age>"),
    (r"\bv\d+\.\d+\.\d+\S*", "<version>"),
    (r"\b(web)-[0-9a-z]{8,10}-[0-9a-z]{5}\b", r"\1-<id>"),
    (r"\b(web)-[0-9a-z]{8,10}\b", r"\1-<id>"),
    (r"worker-[123]\b(?=.*<none>\s+<none>$)", "<node>"),
    (r"\bvm-\d+\b", "<vm>"),
    (r"/(dc|DC0)/", "/<datacenter>/"),
    (r"\S*/govc: .*(current state \(|InvalidPowerState).*", "InvalidPowerState"),
    (r"\S*/govc: ", "govc: "),
    (r" +", " "),
)


def shown(program_name: str) -> list[str]:
    """The commands of one program in our pages' `sh` blocks and in what the demo shows at its end."""
    text = "\n".join(
        block for page in PAGES for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.M | re.S)
    )
    text += (ROOT / "vgpuctl" / "cli" / "simulating" / "demo.py").read_text()
    return sorted(set(re.findall(rf"^ *({program_name} [^\n\"]+)", text, re.M)))


NODE, MORE = "worker-1", "vgpu.type=v100-4q-4GB"
KUBECTL = [
    # A cluster without Cluster API knows no Machines; test_machines.py defines them, and asks for them.
    *(command for command in shown("kubectl") if " machines" not in command),
    "kubectl get nodes -o name",
    "kubectl get nodes -l vgpu.type",
    "kubectl get nodes -l vgpu.type=none",
    "kubectl get node nobody",
    "kubectl get things",
    "kubectl get pods",
    "kubectl get pods --field-selector spec.nodeName=nobody",
    "kubectl get deployments,replicasets,pdb",
    "kubectl get pods,nodes -o jsonpath={.items[*].kind}",
    "kubectl get leases -n kube-node-lease -o name",
    "kubectl get deployment web -o jsonpath={.status.readyReplicas}",
    f"kubectl label node {NODE} {MORE}",
    f"kubectl label node {NODE} vgpu.type=other",
    f"kubectl annotate node {NODE} kept=yes",
    f"kubectl annotate node {NODE} kept-",
    f"kubectl cordon {NODE}",
    f"kubectl cordon {NODE}",
    "kubectl get nodes",
    f"kubectl uncordon {NODE}",
    f"kubectl uncordon {NODE}",
    f"kubectl taint node {NODE} kept=yes:NoSchedule",
    f"kubectl taint node {NODE} kept-",
    f"kubectl drain {NODE} --dry-run=client --pod-selector=app=none",
    "kubectl scale deployment/web --replicas=2",
    "kubectl rollout status deployment/web --timeout=30s",
    "kubectl scale deployment/web --replicas=2 --current-replicas=7",
    "kubectl wait --for=condition=Ready nodes --all --timeout=10s",
    "kubectl wait --for=delete pod/nobody --timeout=10s",
    "kubectl delete pod nobody",
    "kubectl create configmap notes --from-literal=key=value",
    "kubectl create configmap notes --from-literal=key=value",
    "kubectl apply -f {manifest}",
    "kubectl apply -f {manifest}",
    "kubectl get configmap applied -o jsonpath={.data}",
    "kubectl delete -f {manifest}",
]


def plain(text: str) -> list[str]:
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text, flags=re.M)
    return sorted(line.strip() for line in text.splitlines() if line.strip())


@pytest.fixture(scope="module")
def both_clusters(our_cluster: Cluster, real_cluster: Cluster) -> Iterator[tuple[Cluster, Cluster]]:
    """The same things stand in both."""
    for cluster in (our_cluster, real_cluster):
        cluster.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"vgpu.type": "v100-4q-4GB"}}})
        cluster.create(cluster.path("deployments", group="apps"), deployment("web", 1))
        cluster.create(cluster.path("poddisruptionbudgets", group="policy"), budget("web", "web", maxUnavailable=1))
        cluster.until_running("app=web", 1)
    yield our_cluster, real_cluster
    for cluster in (our_cluster, real_cluster):
        cluster.kubectl("delete", "deployment/web", "pdb/web")
        cluster.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"vgpu.type": None}}})


def test_kubectl_hears_the_same(both_clusters: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    """One after another, for many build on those before."""
    manifest = tmp_path / "applied.json"
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"key": "value"}}
    manifest.write_text(json.dumps(applied))
    told = []
    for command in (each.replace("{manifest}", str(manifest)) for each in KUBECTL):
        ours, real = (cluster.kubectl(*shlex.split(command)[1:]) for cluster in both_clusters)
        told += different(command, ours, real)
    assert not told, "\n\n".join(told)


def different(command: str, ours: Any, real: Any) -> list[str]:
    a, b = (
        remaining.without(command, [f"exit {one.returncode}", *plain(one.stdout + one.stderr)]) for one in (ours, real)
    )
    if a == b:
        return []
    lines = [f"$ {command}", *(f"  ours  {line}" for line in a if line not in b)]
    return ["\n".join([*lines, *(f"  real  {line}" for line in b if line not in a)])]


GOVC = [
    *shown("govc"),
    "govc vm.info nobody",
    "govc vm.info worker-1 worker-2",
    "govc find / -type m -name 'worker-*'",
    "govc find / -type h",
    "govc ls vm/worker-1",
    "govc object.collect -s vm/worker-1 runtime.powerState",
    "govc object.collect -s vm/worker-1 config.memoryReservationLockedToMax",
    "govc gpu.vm.info -vm worker-1",
    "govc gpu.host.profile.ls -host esx-1",
    "govc vm.power -on worker-1",
    "govc vm.power -on worker-1",
    "govc object.collect -s vm/worker-1 runtime.powerState",
    "govc vm.power -suspend worker-1",
    "govc vm.power -suspend worker-1",
    "govc vm.info worker-1",
    "govc vm.power -off worker-1",
    "govc vm.power -off worker-1",
    "govc vm.power -on nobody",
    "govc gpu.vm.remove -vm worker-1",
    "govc gpu.vm.info -vm worker-1",
    "govc gpu.vm.add -vm worker-1 -profile grid_v100-4q",
    "govc gpu.vm.info -vm worker-1",
    "govc vm.change -vm worker-1 -e some.key=1",
    "govc device.ls -vm worker-1 pcipassthrough-*",
]


@pytest.fixture
def both_vcenters(our_vcenter: Vcenter, vcsim_vcenter: Vcenter) -> tuple[Vcenter, Vcenter]:
    """All workers off, worker-1 with a vGPU."""
    for vcenter in (our_vcenter, vcsim_vcenter):
        client = Client(vcenter)
        client.as_at_the_beginning()
        client.ok(client.vm("worker-1").Reconfigure(attach(QUARTER)))
        client.close()
    return our_vcenter, vcsim_vcenter


def test_govc_hears_the_same(both_vcenters: tuple[Vcenter, Vcenter], tmp_path: Path) -> None:
    def run(vcenter: Vcenter, command: str) -> Any:
        env = {**os.environ, **vcenter.environment, "HOME": str(tmp_path), "GOVMOMI_HOME": str(tmp_path)}
        words = [str(program("govc")), *shlex.split(command)[1:]]
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)

    told = []
    for command in GOVC:
        ours, real = (run(vcenter, command) for vcenter in both_vcenters)
        told += different(command, ours, real)
    assert not told, "\n\n".join(told)
