"""The product's whole story through a real control plane: real kubelets inside the VMs of our vCenter and of vcsim."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.support.fleets import QUARTER, WHOLE
from tests.support.granted import Asked
from tests.support.paths import ROOT
from tests.support.peers.account import Account
from tests.support.peers.clusters import Cluster, Object, budget, condition, deployment, pod, runs, taints
from tests.support.peers.control_plane import NODE_GRACE_S, ControlPlane
from tests.support.peers.machines import PoweredMachines, RealMachines
from tests.support.peers.processes import program, until
from tests.support.peers.vcenters import Client, Vcenter
from vgpuctl.model.record import FACT_LABELS

DAY, NIGHT = tuple(f"worker-{number}" for number in range(1, 5)), "worker-5"
GPU_LIMIT = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
MARKS = "vgpuctl.io/"
COMMAND_WITHIN_S = 90.0
#: Longer than a night and a morning take here, on a slow machine, too.
LONG_GRACE_S = 300.0
#: Enough while no machine runs: none has a heartbeat to miss.
NO_GRACE_S = 1.0


@pytest.fixture
def grace_s(request: pytest.FixtureRequest) -> float:
    """How long a silent node counts as healthy in this story."""
    return float(getattr(request, "param", NODE_GRACE_S))


@pytest.fixture
def real(logs: Path, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane for this story alone, without machines and controllers as yet."""
    plane = ControlPlane(logs / re.sub(r"\W+", "-", request.node.name))
    try:
        plane.serve()
        yield plane
    finally:
        plane.down()


@dataclasses.dataclass
class Story:
    """`account`: that of vgpuctl's commands. The rest is done by an administrator."""

    vcenter: Vcenter
    client: Client
    cluster: Cluster
    account: Account

    def vgpuctl(self, *words: str, code: int = 0) -> str:
        """The product's real command, with the environment that an operator has."""
        mine = {
            **self.vcenter.environment,
            "KUBECONFIG": str(self.account.kubeconfig),
            "VGPUCTL_PROFILES": str(ROOT / "profiles.yaml"),
            "VGPUCTL_SCHEDULES": str(ROOT / "schedules"),
            "NO_COLOR": "1",
        }
        log = self.cluster.kubeconfig.parent / f"vgpuctl-{'-'.join(words)}.log"
        with log.open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "vgpuctl", *words],
                env={**os.environ, **mine},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        try:
            ended = process.wait(COMMAND_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            ended = process.wait()
        assert ended == code, f"{words}: {ended}\n{log.read_text()}\n{self.stand()}"
        return log.read_text()

    def stand(self) -> str:
        """How the cluster stands, for whoever reads why a command failed."""
        return self.cluster.kubectl("get", "nodes,pods,pdb", "-o", "wide").stdout

    def govc(self, *words: str) -> str:
        """The real govc; its notes of sessions go beside the kubeconfig."""
        home = str(self.cluster.kubeconfig.parent)
        env = {**os.environ, **self.vcenter.environment, "HOME": home, "GOVMOMI_HOME": home}
        done = subprocess.run(
            [str(program("govc")), *words], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def node(self, name: str) -> Object:
        return self.cluster.node(name)

    def marks(self, name: str) -> set[str]:
        """Ours on a node, but for those that tell what its VM carries."""
        metadata = self.node(name)["metadata"]
        every = {**metadata["labels"], **metadata.get("annotations", {})}
        return {key for key in every if key.startswith(MARKS)} - set(FACT_LABELS)

    def power(self) -> dict[str, str]:
        return {name: self.client.power(self.client.vm(name)) for name in (*DAY, NIGHT)}

    def runs_on(self, app: str) -> set[str]:
        pods = self.cluster.pods(f"app={app}")
        return {one["spec"]["nodeName"] for one in pods if runs(one)}

    def begin(self, plane: ControlPlane, grace_s: float) -> None:
        """Each machine has joined the cluster once, is off, and known to be: else pods are still sent to it."""
        vms = [self.client.vm(name) for name in (*DAY, NIGHT)]
        if self.vcenter.name == "vcsim":
            # Its VMs boot by BIOS, with which the V100's address space is out of reach.
            self.client.ok(*(vm.Reconfigure(vim.vm.ConfigSpec(firmware="efi")) for vm in vms))
        self.client.ok(*(vm.PowerOn() for vm in vms))
        until(lambda: self.nodes("True") == {*DAY, NIGHT}, 60, what="all five workers have joined")
        self.client.ok(*(vm.PowerOff() for vm in vms))
        until(lambda: not plane.kubelets, what="all are off")
        plane.control(NO_GRACE_S)
        until(lambda: self.nodes("Unknown") == {*DAY, NIGHT}, 90, what="all are lost")
        plane.control(grace_s)
        plane.start_kubelet("infra-1")
        until(lambda: self.nodes("True") == {"infra-1"}, 60, what="one that is no worker has joined")
        self.create_workloads()

    def nodes(self, ready: str) -> set[str]:
        nodes = self.cluster.get("/api/v1/nodes")["items"]
        return {node["metadata"]["name"] for node in nodes if condition(node, "Ready") == ready}

    def create_workloads(self) -> None:
        path = self.cluster.path("deployments", group="apps")
        shared = {"nodeSelector": {"vgpu.type": "v100-4q-4GB"}, "containers": [_main(**GPU_LIMIT)]}
        self.cluster.create(path, deployment("notebooks", 4, **shared))
        self.cluster.create(path, deployment("gateway", 3))
        budgets = self.cluster.path("poddisruptionbudgets", group="policy")
        self.cluster.create(budgets, budget("gateway", "gateway", maxUnavailable=1))
        whole: dict[str, Any] = {"nodeSelector": {"vgpu.type": "v100-16q-16GB"}, "containers": [_main(**GPU_LIMIT)]}
        template = pod("training", restartPolicy="Never", **whole)
        job = {"template": {"metadata": {"labels": {"app": "training"}}, "spec": template["spec"]}}
        self.cluster.create(self.cluster.path("jobs", group="batch"), {"metadata": {"name": "training"}, "spec": job})


def _main(**more: Any) -> Object:
    return {"name": "main", "image": "main:1", **more}


@pytest.fixture
def story(vcenter: Vcenter, client: Client, real: ControlPlane, grace_s: float) -> Iterator[Story]:
    cluster = Cluster(
        name="real",
        port=real.port,
        token=real.token,
        ca=real.ca,
        kubeconfig=real.kubeconfig,
        machines=RealMachines(real),
    )
    with PoweredMachines(vcenter, real):
        story = Story(vcenter, client, cluster, Account.of(cluster))
        story.begin(real, grace_s)
        yield story


def test_day_to_night_and_back(story: Story) -> None:
    story.vgpuctl("provision", "--yes")
    carried = {name: [one.backing.vgpu for one in story.client.vgpus(story.client.vm(name))] for name in (*DAY, NIGHT)}
    assert carried == {name: [QUARTER] for name in DAY} | {NIGHT: [WHOLE]}
    story.vgpuctl("label-nodes")
    labels = {name: story.node(name)["metadata"]["labels"]["vgpu.type"] for name in (*DAY, NIGHT)}
    assert labels == dict.fromkeys(DAY, "v100-4q-4GB") | {NIGHT: "v100-16q-16GB"}

    story.vgpuctl("switch", "day", "--yes")
    until(lambda: story.runs_on("notebooks") == set(DAY), 60, what="a notebook on each day worker")
    assert story.power() == dict.fromkeys(DAY, "poweredOn") | {NIGHT: "poweredOff"}
    notebooks = {one["metadata"]["uid"] for one in story.cluster.pods("app=notebooks")}

    story.vgpuctl("switch", "night", "--yes")
    assert story.power() == dict.fromkeys(DAY, "suspended") | {NIGHT: "poweredOn"}
    until(lambda: story.runs_on("training") == {NIGHT}, 60, what="the training runs")
    until(lambda: len(story.runs_on("gateway")) >= 1, 60, what="the gateway lives on")
    assert story.runs_on("gateway") <= {"infra-1", NIGHT}
    for name in DAY:
        assert story.node(name)["spec"]["unschedulable"] is True
        assert story.node(name)["metadata"]["labels"]["vgpuctl.io/state"] == "asleep"
    assert story.marks(NIGHT) == set()
    assert notebooks.isdisjoint(one["metadata"]["uid"] for one in story.cluster.pods("app=notebooks"))
    assert json.loads(story.vgpuctl("status", "-o", "json"))["workers"]

    story.vgpuctl("switch", "day", "--yes")
    assert story.power() == dict.fromkeys(DAY, "poweredOn") | {NIGHT: "suspended"}
    until(lambda: story.runs_on("notebooks") == set(DAY), 60, what="a notebook on each day worker again")
    for name in DAY:
        assert story.marks(name) == set()
        assert condition(story.node(name), "Ready") == "True"
        assert not taints(story.node(name))
    again = story.vgpuctl("switch", "day", "--yes")
    assert "othing to do" in again or not again


#: The most telling rights, and what a night says without each. The API server speaks where it is not asked before.
TELLING = {
    Asked("create", "", "pods/eviction", "default", ""): "This account may not create pods/eviction in the namespace",
    Asked("patch", "", "nodes", "", ""): "This account may not patch nodes.",
    Asked("update", "coordination.k8s.io", "leases", "vgpuctl", "vgpuctl"): 'cannot update resource "leases"',
    Asked("get", "", "configmaps", "vgpuctl", "vgpuctl"): 'cannot get resource "configmaps"',
    Asked("patch", "", "configmaps", "vgpuctl", "vgpuctl"): 'cannot patch resource "configmaps"',
    Asked("list", "policy", "poddisruptionbudgets", "", ""): 'cannot list resource "poddisruptionbudgets"',
}
#: Without these, a night is not written down, and its pods' volumes are not waited for.
SPARED = tuple(Asked(verb, "", "configmaps", "vgpuctl", "") for verb in ("list", "update", "delete"))
UNSEEN = Asked("list", "storage.k8s.io", "volumeattachments", "", "")


@pytest.mark.parametrize("vcenter", ["ours"], indirect=True)
def test_a_night_without_a_right_is_not_begun_or_does_without(story: Story) -> None:
    story.vgpuctl("provision", "--yes")
    story.vgpuctl("switch", "day", "--yes")
    until(lambda: story.runs_on("notebooks") == set(DAY), 60, what="a notebook on each day worker")
    for right, said in TELLING.items():
        story.account.lose(right)
        told = story.vgpuctl("switch", "night", "--yes", code=5)
        assert said in told, right
        assert "Hint: vgpuctl rights kubernetes prints the rights" in told
        assert story.power() == dict.fromkeys(DAY, "poweredOn") | {NIGHT: "poweredOff"}
        assert all(story.marks(name) == set() and not story.node(name)["spec"].get("unschedulable") for name in DAY)
        story.account.regain(right)
    story.account.lose(*SPARED, UNSEEN)
    told = story.vgpuctl("switch", "night", "--yes")
    assert "Kubernetes shows us no volumeattachments" in told
    assert 'cannot list resource "configmaps"' in told
    assert story.power() == dict.fromkeys(DAY, "suspended") | {NIGHT: "poweredOn"}


def test_provision_as_govc_and_kubectl_see_it(story: Story) -> None:
    """Attached, replaced in one reconfigure, taken off; the pods that ask for a profile land where it is."""

    def devices() -> dict[str, list[str]]:
        """What govc lists; of which types vcsim's summaries do not tell, so pyVmomi does."""
        carried = {
            name: [one.backing.vgpu for one in story.client.vgpus(story.client.vm(name))] for name in (*DAY, NIGHT)
        }
        for name, vgpus in carried.items():
            listed = re.findall(r"^GPU \d+:", story.govc("gpu.vm.info", "-vm", name), re.MULTILINE)
            assert len(listed) == len(vgpus), name
        return carried

    def labels() -> dict[str, str]:
        rows = story.cluster.kubectl("get", "nodes", "-L", "vgpu.type", "--no-headers").stdout.splitlines()
        return {row.split()[0]: row.split()[-1] for row in rows if row.startswith("worker-")}

    story.vgpuctl("provision", "--yes")
    assert devices() == {name: [QUARTER] for name in DAY} | {NIGHT: [WHOLE]}
    story.vgpuctl("provision", NIGHT, "--profile", "v100-4q-4GB", "--yes")
    story.vgpuctl("provision", "worker-1", "--profile", "none", "--yes")
    assert devices() == {name: [QUARTER] for name in (*DAY[1:], NIGHT)} | {"worker-1": []}
    story.vgpuctl("provision", "--yes")
    assert devices() == {name: [QUARTER] for name in DAY} | {NIGHT: [WHOLE]}
    story.vgpuctl("label-nodes")
    assert labels() == dict.fromkeys(DAY, "v100-4q-4GB") | {NIGHT: "v100-16q-16GB"}
    story.vgpuctl("switch", "day", "--yes")
    until(lambda: story.runs_on("notebooks") == set(DAY), 60, what="the scheduler places pods by label and GPU")


@pytest.mark.parametrize("grace_s", [LONG_GRACE_S], indirect=True, ids=["long grace"])
def test_a_frozen_pod_goes_on_after_a_sleep_that_nobody_noticed(story: Story) -> None:
    """Shorter than the node monitor's grace: Ready never changes, and its node is truly back all the same."""
    bert = Bert.at_work(story)
    since = bert.node_ready_since()
    story.vgpuctl("switch", "night", "--yes")
    assert story.power()["worker-1"] == "suspended"
    story.vgpuctl("switch", "day", "--yes")
    assert bert.node_ready_since() == since, "for the control plane it never slept"
    bert.goes_on()


def test_a_frozen_pod_goes_on_after_its_node_was_silent(story: Story) -> None:
    bert = Bert.at_work(story)
    story.vgpuctl("switch", "night", "--yes")
    until(lambda: condition(story.node("worker-1"), "Ready") == "Unknown", 90, what="its node is silent")
    until(lambda: condition(bert.pod(), "Ready") == "False", 30, what="the pod is not counted as ready")
    story.vgpuctl("switch", "day", "--yes")
    bert.goes_on()


@dataclasses.dataclass
class Bert:
    """A pod that sleeps along, on the first day worker."""

    story: Story
    uid: str

    @classmethod
    def at_work(cls, story: Story) -> Bert:
        story.vgpuctl("provision", "--yes")
        story.vgpuctl("label-nodes")
        story.vgpuctl("switch", "day", "--yes")
        made = story.cluster.create(story.cluster.path("pods"), _frozen("bert", "worker-1"))
        bert = cls(story, made["metadata"]["uid"])
        until(lambda: condition(bert.pod(), "Ready") == "True", 60, what="bert runs")
        return bert

    def pod(self) -> Object:
        return next(one for one in self.story.cluster.pods("app=bert") if one["metadata"]["name"] == "bert")

    def node_ready_since(self) -> str:
        conditions = self.story.node("worker-1")["status"]["conditions"]
        since: str = next(one["lastTransitionTime"] for one in conditions if one["type"] == "Ready")
        return since

    def goes_on(self) -> None:
        """The same one, never restarted."""
        until(lambda: condition(self.pod(), "Ready") == "True", 60, what="bert goes on")
        assert self.pod()["metadata"]["uid"] == self.uid
        assert [one["restartCount"] for one in self.pod()["status"]["containerStatuses"]] == [0]


def _frozen(name: str, node: str) -> Object:
    silence = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    made = pod(
        name,
        containers=[_main()],
        nodeSelector={"kubernetes.io/hostname": node},
        tolerations=[{"key": key, "operator": "Exists", "effect": "NoExecute"} for key in silence],
    )
    made["metadata"]["annotations"] = {"vgpuctl.io/on-switch": "freeze"}
    return made
