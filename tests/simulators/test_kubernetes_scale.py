"""A large cluster: what has stood for long stands at once, and every step costs what it changes, not what there is."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.kubernetes_cluster import BEGAN, MERGE, PODS, Cluster
from vgpuctl.sim.inventory import Group, HostSpec, Inventory, VmSpec, Workload, default_shifts, v100
from vgpuctl.sim.kube.objects import at, is_true, name_of
from vgpuctl.sim.world import World

WORKERS = tuple(f"worker-{n}" for n in range(1, 41))
DAY = Group("v100-4q-4GB", ("grid_v100-4q",), WORKERS[:30])
NIGHT = Group("v100-16q-16GB", ("grid_v100-16q",), WORKERS[30:])


def estate() -> Inventory:
    """300 nodes and 100 VMs that have none."""
    asleep = [VmSpec(name, "esx-1") for name in NIGHT.workers]
    awake = [VmSpec(name, "esx-1", powered_on=True, vgpus=DAY.vgpus, memory_locked=True) for name in DAY.workers]
    others = [VmSpec(f"node-{n}", "esx-1", powered_on=True) for n in range(260)]
    without = [VmSpec(f"vm-{n}", "esx-1", powered_on=n < 50, has_node=False) for n in range(100)]
    workloads = (
        Workload(name="notebooks", replicas=35, profile=DAY.profile),
        Workload(name="web", replicas=1500),
        Workload(name="training", replicas=10, kind="Job", profile=NIGHT.profile),
    )
    host = HostSpec("esx-1", tuple(map(v100, range(8))))
    vms = (*asleep, *awake, *others, *without)
    return Inventory("gpu", (host,), vms, (DAY, NIGHT), default_shifts(DAY, NIGHT), workloads)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(World(estate(), began=BEGAN))
    cluster.wait(1)
    return cluster


def test_what_has_run_for_long_runs_at_once(cluster: Cluster) -> None:
    phases = {app: Counter(at(pod, "status.phase") for pod in cluster.pods(app)) for app in ("web", "notebooks")}
    assert phases == {"web": {"Running": 1500}, "notebooks": {"Running": 30, "Pending": 5}}
    assert len({at(pod, "status.podIP") for pod in cluster.pods("web")}) == 1500
    spread = Counter(cluster.where("web").values())
    assert max(spread.values()) - min(spread.values()) <= 1
    deployment = cluster.ask("GET", "/apis/apps/v1/namespaces/default/deployments/web")
    assert deployment["status"]["readyReplicas"] == 1500
    worker = cluster.node("worker-1")
    assert (worker["metadata"]["labels"]["vgpu.type"], worker["status"]["allocatable"]["nvidia.com/gpu"]) == (
        DAY.profile,
        "1",
    )


def test_founded_pods_live_on_as_any_others(cluster: Cluster) -> None:
    pod = cluster.pods("notebooks")[0]
    cluster.ask(*cluster.eviction(next(pod for pod in cluster.pods("notebooks") if is_true(pod, "Ready"))))
    cluster.wait(20)
    assert Counter(at(pod, "status.phase") for pod in cluster.pods("notebooks")) == {"Running": 30, "Pending": 5}
    before = cluster.kubernetes.store.version
    cluster.wait(0)
    assert cluster.kubernetes.store.version == before
    assert at(pod, "status.containerStatuses")


def test_a_vm_without_a_node_has_a_machine_and_no_kubelet(cluster: Cluster) -> None:
    names = {name_of(node) for node in cluster.kubernetes.store.all("nodes")}
    assert "vm-1" not in names
    assert (cluster.kubernetes.running("vm-1"), cluster.kubernetes.running("vm-99")) == (True, False)
    ended: list[str] = []
    for name in ("vm-99", "a-clone"):
        cluster.kubernetes.boot(name, 1)
        cluster.wait(5)
        assert cluster.kubernetes.running(name)
        cluster.kubernetes.freeze(name)
        assert not cluster.kubernetes.running(name)
        cluster.kubernetes.thaw(name)
        cluster.kubernetes.shut_down(name, lambda: ended.append("down"))
        cluster.wait(5)
        assert not cluster.kubernetes.running(name)
        cluster.kubernetes.halt(name)
    assert ended == ["down", "down"]
    assert {name_of(node) for node in cluster.kubernetes.store.all("nodes")} == names


def test_the_nodes_speak_evenly_spread_over_a_period(cluster: Cluster) -> None:
    cluster.wait(20)
    versions = []
    for _ in range(10):
        before = cluster.kubernetes.store.version
        cluster.wait(1)
        versions.append(cluster.kubernetes.store.version - before)
    assert min(versions) > 0.8 * max(versions)


def test_a_pod_that_waits_is_placed_by_the_one_node_that_became_right(cluster: Cluster) -> None:
    cluster.kubernetes.boot(NIGHT.workers[0], 1)
    cluster.wait(5)
    assert set(cluster.where("training").values()) == {None}
    cluster.label(NIGHT.profile, NIGHT.workers[0])
    cluster.wait(5)
    assert Counter(cluster.where("training").values()) == {None: 9, NIGHT.workers[0]: 1}


def test_all_pages_of_a_list_show_one_moment(cluster: Cluster) -> None:
    first = cluster.ask("GET", PODS, query={"limit": "500"})
    for pod in cluster.pods("web")[600:610]:
        cluster.ask("DELETE", f"{PODS}/{name_of(pod)}")
    cluster.ask(
        "PATCH", f"{PODS}/{name_of(cluster.pods('web')[700])}", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE
    )
    cluster.wait(30)
    listed, answer = list(first["items"]), first
    while token := answer["metadata"].get("continue"):
        assert answer["metadata"]["remainingItemCount"] > 0
        answer = cluster.ask("GET", PODS, query={"limit": "500", "continue": token})
        assert answer["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        listed += answer["items"]
    assert len(listed) == 1545
    assert not any("a" in item["metadata"]["labels"] or "deletionTimestamp" in item["metadata"] for item in listed)


def test_a_page_asked_for_too_late_is_gone(cluster: Cluster) -> None:
    old = {"limit": "500", "continue": cluster.ask("GET", PODS, query={"limit": "500"})["metadata"]["continue"]}
    cluster.wait(301)
    assert cluster.refused("GET", PODS, query=old).code == 410
    compacted = {"limit": "500", "continue": cluster.ask("GET", PODS, query={"limit": "500"})["metadata"]["continue"]}
    assert cluster.ask("GET", PODS, query=compacted)["items"]
    cluster.cordon("node-1")
    cluster.kubernetes.store.compact()
    assert cluster.refused("GET", PODS, query=compacted).code == 410
