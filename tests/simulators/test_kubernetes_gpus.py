"""The GPU stack in virtual time: a node offers GPUs only while its device plugin runs, and that comes late."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.support.day import at_work
from tests.support.kubernetes_cluster import BEGAN, MERGE, Cluster
from vgpuctl.sim.inventory import Durations, Inventory, default_inventory
from vgpuctl.sim.kube.api import cells
from vgpuctl.sim.kube.objects import Object, at, is_leaving, is_true, labels_of, name_of, uid_of
from vgpuctl.sim.world import World

GPU = "nvidia.com/gpu"
OPERATOR = "gpu-operator"
DAEMON_SET = f"/apis/apps/v1/namespaces/{OPERATOR}/daemonsets/nvidia-device-plugin-daemonset"
#: A guest boots in 2 s, and its kubelet starts 1 s later.
BOOT_S = 3.0


class Gpus(Cluster):
    """`worker` is the one that the stories are about."""

    worker = "worker-1"

    @classmethod
    def of(cls, inventory: Inventory, **durations: float) -> Gpus:
        return cls(World(inventory, Durations(**durations), began=BEGAN))  # type: ignore[arg-type]

    def boot(self, gpus: int = 1) -> None:
        self.kubernetes.boot(self.worker, gpus)

    def counts(self) -> tuple[str | None, str | None]:
        """The worker's GPUs: its capacity, and how many a pod can get."""
        status = self.node(self.worker)["status"]
        return status["capacity"].get(GPU), status["allocatable"].get(GPU)

    @property
    def plugins(self) -> list[Object]:
        pods = self.kubernetes.store.sorted("pods", OPERATOR)
        return [pod for pod in pods if at(pod, "spec.nodeName") == self.worker and not is_leaving(pod)]

    @property
    def plugin(self) -> Object:
        (found,) = self.plugins
        return found

    def shown(self, pod: Object) -> list[str]:
        """What `kubectl get pods` shows of it."""
        now = self.world.clock.utc()
        return [cells.pod_ready(pod, now), cells.pod_status(pod, now)]

    def delete_plugin(self, **options: object) -> None:
        self.ask("DELETE", f"/api/v1/namespaces/{OPERATOR}/pods/{name_of(self.plugin)}", options or None)


@pytest.fixture
def slow() -> Gpus:
    """Nodes whose GPU stack takes 20 s."""
    return Gpus.of(default_inventory(), gpu_stack_s=20.0)


@pytest.fixture
def ready(slow: Gpus) -> Gpus:
    """The same after a boot of the worker."""
    slow.boot()
    slow.wait(BOOT_S + 22)
    assert slow.counts() == ("1", "1")
    return slow


def test_a_node_offers_gpus_only_when_its_device_plugin_has_started(slow: Gpus) -> None:
    slow.boot()
    slow.wait(BOOT_S + 19.5)
    assert is_true(slow.node(slow.worker), "Ready")
    assert slow.counts() == (None, None)
    assert not is_true(slow.plugin, "Ready")
    assert slow.shown(slow.plugin) == ["0/1", "Init:0/1"]
    slow.wait(1)
    assert slow.counts() == ("1", "1")
    assert is_true(slow.plugin, "Ready")


def test_only_nodes_with_vgpus_run_a_device_plugin(ready: Gpus) -> None:
    ready.kubernetes.boot("worker-2", 0)
    ready.wait(60)
    assert is_true(ready.node("worker-2"), "Ready")
    pods = ready.kubernetes.store.all("pods")
    assert {at(pod, "spec.nodeName") for pod in pods if pod["metadata"]["namespace"] == OPERATOR} == {ready.worker}
    assert "nvidia.com/gpu.present" not in labels_of(ready.node("worker-2"))


def test_a_node_that_lost_its_vgpus_loses_its_device_plugin_and_keeps_a_count_of_0(ready: Gpus) -> None:
    ready.kubernetes.halt(ready.worker)
    ready.boot(gpus=0)
    ready.wait(60)
    assert ready.plugins == []
    assert ready.counts() == ("0", "0")
    labels = labels_of(ready.node(ready.worker))
    assert labels["nvidia.com/gpu.present"] == "false"
    assert "nvidia.com/gpu.deploy.device-plugin" not in labels


def test_a_reboot_counts_0_until_the_plugin_has_registered_again(ready: Gpus) -> None:
    plugin = ready.plugin
    ready.kubernetes.halt(ready.worker)
    ready.boot()
    ready.wait(BOOT_S - 0.1)
    # Nothing writes the status before the kubelet does.
    assert ready.counts() == ("1", "1")
    ready.wait(10)
    assert ready.counts() == ("0", "0")
    ready.wait(12)
    assert ready.counts() == ("1", "1")
    assert uid_of(ready.plugin) == uid_of(plugin)
    assert ready.plugin["status"]["containerStatuses"][0]["restartCount"] == 1


def test_after_a_resume_the_number_is_stale_until_the_plugin_is_ready(ready: Gpus) -> None:
    ready.kubernetes.freeze(ready.worker)
    ready.wait(10)
    ready.kubernetes.thaw(ready.worker)
    ready.wait(3)
    assert is_true(ready.node(ready.worker), "Ready")
    assert ready.counts() == ("1", "1")
    assert not is_true(ready.plugin, "Ready")
    assert ready.shown(ready.plugin) == ["0/1", "Running"]
    ready.wait(20)
    assert ready.counts() == ("1", "1")
    assert is_true(ready.plugin, "Ready")
    assert ready.plugin["status"]["containerStatuses"][0]["restartCount"] == 0
    assert ready.shown(ready.plugin) == ["1/1", "Running"]


def test_a_stack_that_was_suspended_while_it_came_up_begins_again_after_the_resume(slow: Gpus) -> None:
    slow.boot()
    slow.wait(BOOT_S + 15)
    slow.kubernetes.freeze(slow.worker)
    slow.wait(100)
    slow.kubernetes.thaw(slow.worker)
    # The five seconds that were left before the suspend, and more.
    slow.wait(15)
    assert slow.counts() == (None, None)
    slow.wait(10)
    assert slow.counts() == ("1", "1")


def test_without_its_plugin_a_node_keeps_its_capacity_and_has_nothing_to_give(ready: Gpus) -> None:
    ready.ask("DELETE", DAEMON_SET)
    ready.wait(5)
    assert ready.plugins == []
    assert ready.counts() == ("1", "0")
    ready.wait(3600)
    assert ready.counts() == ("1", "0")


def test_a_deleted_plugin_is_replaced_without_waiting_for_the_stack_again(ready: Gpus) -> None:
    plugin, seen = ready.plugin, set()
    ready.delete_plugin()
    for _ in range(50):
        ready.wait(0.1)
        seen.add(ready.counts())
    assert seen == {("1", "1"), ("1", "0")}
    assert ready.counts() == ("1", "1")
    assert uid_of(ready.plugin) != uid_of(plugin)


def test_a_plugin_that_was_deleted_by_force_while_its_node_slept_is_missed_after_the_resume(ready: Gpus) -> None:
    ready.kubernetes.freeze(ready.worker)
    ready.wait(100)
    ready.ask("DELETE", DAEMON_SET)
    ready.delete_plugin(gracePeriodSeconds=0)
    ready.wait(10)
    assert ready.counts() == ("1", "1")
    ready.kubernetes.thaw(ready.worker)
    ready.wait(5)
    assert ready.counts() == ("1", "0")


def test_kubelets_that_report_only_changes_report_a_lost_plugin() -> None:
    found = Gpus.of(default_inventory(), report_s=300.0)
    found.boot()
    found.wait(60)
    assert found.counts() == ("1", "1")
    found.ask("DELETE", DAEMON_SET)
    found.wait(3)
    assert found.counts() == ("1", "0")


def test_a_pod_that_is_bound_where_no_gpu_is_offered_fails(slow: Gpus) -> None:
    slow.boot()
    slow.wait(BOOT_S + 5)
    container = {"name": "main", "image": "one", "resources": {"limits": {GPU: "1"}}}
    pod = {"metadata": {"name": "early"}, "spec": {"nodeName": slow.worker, "containers": [container]}}
    slow.ask("POST", "/api/v1/namespaces/default/pods", pod)
    slow.wait(60)
    status = slow.stored("pods", "default", "early")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "UnexpectedAdmissionError")
    assert "no healthy devices present" in status["message"]
    assert slow.counts() == ("1", "1")


def test_a_plugin_starts_on_a_cordoned_node_and_on_one_with_the_taint_of_gpus(slow: Gpus) -> None:
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    slow.patch_node(slow.worker, {"spec": {"unschedulable": True}})
    slow.boot()
    slow.wait(BOOT_S)
    slow.ask("PATCH", f"/api/v1/nodes/{slow.worker}", {"spec": {"taints": [taint]}}, content_type=MERGE)
    slow.wait(25)
    assert slow.counts() == ("1", "1")


def test_a_node_that_was_deleted_gets_its_labels_and_its_plugin_again(ready: Gpus) -> None:
    ready.kubernetes.freeze(ready.worker)
    ready.ask("DELETE", f"/api/v1/nodes/{ready.worker}")
    ready.wait(100)
    ready.kubernetes.thaw(ready.worker)
    ready.wait(30)
    assert labels_of(ready.node(ready.worker))["nvidia.com/gpu.present"] == "true"
    assert is_true(ready.plugin, "Ready")
    assert ready.counts() == ("1", "1")


def test_a_node_that_runs_from_the_beginning_offers_its_gpus_at_once() -> None:
    began = Gpus.of(at_work(default_inventory()), gpu_stack_s=20.0)
    assert began.counts() == ("1", "1")
    plugin = began.plugin
    assert is_true(plugin, "Ready")
    began.wait(60)
    assert uid_of(began.plugin) == uid_of(plugin)
    assert began.ask("GET", DAEMON_SET)["status"]["numberReady"] == 4
    assert began.counts() == ("1", "1")


def timers_in_ten_minutes(inventory: Inventory) -> int:
    """How many timers begin while nothing happens but heartbeats."""
    found, begun = Gpus.of(inventory), list[float]()
    clock = found.world.clock
    found.wait(300)
    clock.on_new_timer = lambda: begun.append(clock.now_s)
    found.wait(600)
    return len(begun)


def test_a_plugin_that_never_comes_costs_nothing_while_nothing_happens() -> None:
    usual = at_work(default_inventory())
    never = replace(usual, vms=tuple(replace(vm, gpu_stack_s=math.inf) for vm in usual.vms))
    found = Gpus.of(never)
    found.wait(300)
    assert found.counts() == (None, None)
    assert not is_true(found.plugin, "Ready")
    assert timers_in_ten_minutes(never) == timers_in_ten_minutes(usual)
