"""vSphere's cloud provider: its taint on the nodes of VMs that do not run, and the nodes of VMs that are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.kubernetes_cluster import BEGAN, NIGHT, Cluster, boot_the_day, taints
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.kube.objects import is_true
from vgpuctl.sim.world import World

ONE = "worker-1"
SHUTDOWN = ("node.cloudprovider.kubernetes.io/shutdown", "NoSchedule")


@pytest.fixture
def day() -> Cluster:
    world = World(replace(default_inventory(), cloud_provider=True), began=BEGAN)
    boot_the_day(world)
    return Cluster(world)


def test_a_suspended_vm_is_tainted_once_its_node_is_not_ready_and_until_it_is_again(day: Cluster) -> None:
    day.kubernetes.freeze(ONE)
    day.wait(35)
    assert is_true(day.node(ONE), "Ready")
    assert SHUTDOWN not in taints(day.node(ONE)), "a Ready node is not asked for"
    day.wait(35)
    assert not is_true(day.node(ONE), "Ready")
    assert SHUTDOWN in taints(day.node(ONE))
    day.wait(24 * 3600)
    assert [taint["key"] for taint in day.node(ONE)["spec"]["taints"]].count(SHUTDOWN[0]) == 1
    day.kubernetes.thaw(ONE)
    seen_ready_and_tainted = False
    for _ in range(20):
        day.wait(0.5)
        node = day.node(ONE)
        seen_ready_and_tainted |= is_true(node, "Ready") and SHUTDOWN in taints(node)
    assert seen_ready_and_tainted, "it looks every 5 s only"
    assert is_true(day.node(ONE), "Ready")
    assert taints(day.node(ONE)) == set()


def test_a_vm_that_is_off_is_tainted_and_one_that_hangs_is_not(day: Cluster) -> None:
    assert SHUTDOWN in taints(day.node(NIGHT))
    machine = day.kubernetes.kubelets[ONE]
    machine._time.freeze()
    day.wait(120)
    assert not is_true(day.node(ONE), "Ready")
    assert SHUTDOWN not in taints(day.node(ONE)), "its VM is powered on, only its kubelet is silent"


def test_the_node_of_a_destroyed_vm_is_deleted_and_that_of_a_sleeper_never(day: Cluster) -> None:
    estate = day.world.estate
    assert day.world.wait_for(estate.destroy(estate.vms[NIGHT])).error is None
    day.kubernetes.freeze(ONE)
    day.wait(6)
    assert day.refused("GET", f"/api/v1/nodes/{NIGHT}").code == 404
    (event,) = (found for found in day.ask("GET", "/api/v1/events")["items"] if found["reason"] == "DeletingNode")
    assert event["message"] == f"Deleting node {NIGHT} because it does not exist in the cloud provider"
    day.wait(3 * 24 * 3600)
    assert day.kubernetes.store.get("nodes", "", ONE) is not None


def test_without_the_cloud_provider_none_of_this_happens() -> None:
    day = Cluster.by_day()
    estate = day.world.estate
    day.world.wait_for(estate.destroy(estate.vms[NIGHT]))
    day.wait(3600)
    assert SHUTDOWN not in taints(day.node(NIGHT))


def test_while_all_nodes_are_ready_it_has_no_timer(day: Cluster) -> None:
    plain = Cluster.by_day()
    for cluster in (day, plain):
        cluster.kubernetes.boot(NIGHT, 1)
        cluster.wait(60)
    assert not day.kubernetes.cloud_provider._watched
    assert live_timers(day) == live_timers(plain)


def live_timers(cluster: Cluster) -> int:
    return sum(timer.action is not None for timer in cluster.world.clock._timers)
