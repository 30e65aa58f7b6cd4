"""Machines and their nodes: power, heartbeats, silence and return."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.support.kubernetes_cluster import (
    BEGAN,
    DAY,
    DAY_PROFILE,
    NIGHT,
    NIGHT_PROFILE,
    UNREACHABLE,
    Cluster,
    taints,
    the_condition,
)
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.kube.objects import is_leaving, is_true, name_of, uid_of
from vgpuctl.sim.world import World


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(World(began=BEGAN))


@pytest.fixture
def day() -> Cluster:
    return Cluster.by_day()


def test_at_first_only_the_control_plane_is_ready(cluster: Cluster) -> None:
    states = {
        name_of(node): the_condition(node, "Ready")["status"] for node in cluster.kubernetes.store.sorted("nodes")
    }
    assert states == {"infra-1": "True", **dict.fromkeys((*DAY, NIGHT), "Unknown")}
    assert taints(cluster.node("worker-1")) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert cluster.kubernetes.store.get("leases", "kube-node-lease", "worker-1") is None
    assert "nvidia.com/gpu" not in cluster.node("worker-1")["status"]["allocatable"]


def test_a_boot_ends_in_a_lease_and_a_ready_node_with_its_gpu(cluster: Cluster) -> None:
    cluster.kubernetes.boot("worker-1", 1)
    cluster.wait(1.9)
    assert not cluster.kubernetes.running("worker-1")
    cluster.wait(0.2)
    assert cluster.kubernetes.running("worker-1")
    assert not is_true(cluster.node("worker-1"), "Ready")
    cluster.wait(1)
    node = cluster.node("worker-1")
    assert is_true(node, "Ready")
    assert taints(node) == set()
    assert "nvidia.com/gpu" not in node["status"]["allocatable"]
    lease = cluster.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/worker-1")
    assert lease["spec"] == {
        "holderIdentity": "worker-1",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-05T08:00:03.000000Z",
    }


def test_each_boot_has_its_own_id_and_the_machine_keeps_its_uuid(cluster: Cluster) -> None:
    seen = []
    for _ in range(2):
        cluster.kubernetes.boot("worker-1", 1)
        cluster.wait(5)
        seen.append(cluster.node("worker-1")["status"]["nodeInfo"])
        cluster.kubernetes.halt("worker-1")
    vm = next(vm for vm in default_inventory().vms if vm.name == "worker-1")
    assert seen[0]["bootID"] != seen[1]["bootID"]
    assert [info["systemUUID"] for info in seen] == [vm.uuid, vm.uuid]
    assert cluster.node("worker-1")["spec"]["providerID"] == f"vsphere://{vm.uuid}"


def test_a_frozen_node_is_unknown_only_after_its_lease_is_stale(day: Cluster) -> None:
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    day.kubernetes.freeze("worker-1")
    frozen_s = day.world.clock.now_s
    # Its last Lease may be 10 s old, 50 s of grace, and a look at it every 5 s.
    day.wait(39)
    assert is_true(day.node("worker-1"), "Ready")
    day.wait(16)
    node = day.node("worker-1")
    assert the_condition(node, "Ready")["status"] == "Unknown"
    assert taints(node) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    # What it promised before it froze is still there: old evidence.
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    heartbeat = datetime.fromisoformat(the_condition(node, "Ready")["lastHeartbeatTime"])
    assert (heartbeat - day.world.clock.began).total_seconds() <= frozen_s
    assert not any(is_true(pod, "Ready") for pod in day.pods("notebooks") if pod["spec"]["nodeName"] == "worker-1")


def test_a_thawed_node_renews_its_lease_first_and_is_ready_later(day: Cluster) -> None:
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    before = {uid_of(pod) for pod in day.pods("notebooks")}
    day.kubernetes.freeze("worker-1")
    day.wait(60)
    renewed = day.stored("leases", "kube-node-lease", "worker-1")["spec"]["renewTime"]
    boot = day.node("worker-1")["status"]["nodeInfo"]["bootID"]
    day.kubernetes.thaw("worker-1")
    assert day.kubernetes.running("worker-1")
    day.wait(1.1)
    assert day.stored("leases", "kube-node-lease", "worker-1")["spec"]["renewTime"] > renewed
    assert the_condition(day.node("worker-1"), "Ready")["status"] == "Unknown"
    day.wait(1)
    node = day.node("worker-1")
    assert is_true(node, "Ready")
    assert taints(node) == set()
    assert node["status"]["nodeInfo"]["bootID"] == boot
    assert {uid_of(pod) for pod in day.pods("notebooks") if is_true(pod, "Ready")} == before


def test_a_short_sleep_is_not_even_noticed(day: Cluster) -> None:
    day.kubernetes.freeze("worker-1")
    day.wait(20)
    day.kubernetes.thaw("worker-1")
    watch = day.watch("/api/v1/nodes", resourceVersion=str(day.kubernetes.store.version))
    day.wait(60)
    assert all(is_true(event.object, "Ready") for event in watch.take())


def test_pods_of_a_silent_node_go_after_their_toleration_but_not_those_without_limit(day: Cluster) -> None:
    tolerant = {
        "metadata": {"name": "patient"},
        "spec": {
            "nodeName": "worker-1",
            "containers": [{"name": "main"}],
            "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
        },
    }
    day.ask("POST", "/api/v1/namespaces/default/pods", tolerant)
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    day.kubernetes.freeze("worker-1")
    day.wait(330)
    assert not any(is_leaving(pod) for pod in day.pods("notebooks"))
    day.wait(20)
    leaving = [pod for pod in day.pods("notebooks") if is_leaving(pod)]
    assert [pod["spec"]["nodeName"] for pod in leaving] == ["worker-1"]
    assert not is_leaving(day.stored("pods", "default", "patient"))
    # Frozen kubelets end nothing: the pod stays, marked, until the VM is back.
    day.wait(600)
    assert day.kubernetes.store.get("pods", "default", name_of(leaving[0])) is not None
    day.kubernetes.thaw("worker-1")
    day.wait(10)
    assert day.kubernetes.store.get("pods", "default", name_of(leaving[0])) is None


def test_a_reboot_restarts_what_may_restart_and_fails_what_may_not(day: Cluster) -> None:
    day.kubernetes.boot(NIGHT, 1)
    day.label(DAY_PROFILE, *DAY)
    day.label(NIGHT_PROFILE, NIGHT)
    day.wait(10)
    gateway = next(pod for pod in day.pods("gateway") if pod["spec"]["nodeName"] == "worker-1")
    notebook = next(pod for pod in day.pods("notebooks") if pod["spec"]["nodeName"] == "worker-1")
    trainer = day.pods("training")[0]
    for name in ("worker-1", NIGHT):
        day.kubernetes.halt(name)
        assert not day.kubernetes.running(name)
        day.kubernetes.boot(name, 1)
    day.wait(10)
    same = day.stored("pods", "default", name_of(gateway))
    assert (uid_of(same), same["status"]["containerStatuses"][0]["restartCount"]) == (uid_of(gateway), 1)
    assert is_true(same, "Ready")
    # Its GPU comes after the kubelet, which fails such a pod. Its controller makes another one.
    failed = day.stored("pods", "default", name_of(notebook))["status"]
    assert (failed["phase"], failed["reason"]) == ("Failed", "UnexpectedAdmissionError")
    assert len([pod for pod in day.pods("notebooks") if pod["status"]["phase"] == "Running"]) == len(DAY)
    assert day.stored("pods", "default", name_of(trainer))["status"]["phase"] == "Failed"
    assert len([pod for pod in day.pods("training") if pod["status"]["phase"] == "Running"]) == 1


def test_shutting_down_takes_a_while_and_says_when_it_is_done(day: Cluster) -> None:
    done = []
    day.kubernetes.shut_down("worker-1", lambda: done.append(day.world.clock.now_s))
    began = day.world.clock.now_s
    day.wait(5)
    assert done == [began + 1.0]
    assert not day.kubernetes.running("worker-1")


def test_a_deleted_node_registers_anew_and_has_lost_its_labels(day: Cluster) -> None:
    day.label(DAY_PROFILE, "worker-1")
    day.kubernetes.freeze("worker-1")
    day.ask("DELETE", "/api/v1/nodes/worker-1")
    day.wait(60)
    assert day.refused("GET", "/api/v1/nodes/worker-1").code == 404
    day.kubernetes.thaw("worker-1")
    day.wait(3)
    node = day.node("worker-1")
    assert is_true(node, "Ready")
    assert "vgpu.type" not in node["metadata"]["labels"]
