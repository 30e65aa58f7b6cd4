"""The objects that the cluster begins with, and the workloads that come when the day workers are ready."""

from __future__ import annotations

from datetime import timedelta

from vgpuctl.sim.inventory import Inventory, VmSpec, Workload
from vgpuctl.sim.kube.access import bootstrap
from vgpuctl.sim.kube.controllers import cluster_api, gpu_operator
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.lifecycle import own_taints
from vgpuctl.sim.kube.controllers.preplaced_pods import PodPlacer
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.machines import gpu_stack, nodes
from vgpuctl.sim.kube.machines.kubelet import Kubelet
from vgpuctl.sim.kube.machines.kubelets import Kubelets
from vgpuctl.sim.kube.objects import Object, is_true, owner_reference, set_condition, timestamp
from vgpuctl.sim.kube.store import Change, Key

PROFILE_LABEL = "vgpu.type"
#: Kubernetes: the namespaces of every cluster.
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
# The control plane's CPU requests: enough that the scheduler prefers the workers, with room left for three gateways.
_CONTROL_PLANE = {"etcd": "1", "kube-apiserver": "2", "kube-controller-manager": "1", "kube-scheduler": "1"}
_NODE_AGE = timedelta(days=30)
_SILENCE = timedelta(days=1)


class InitialObjects:
    """Creates everything at once, and the workloads with `after_day` when the first shift's workers are ready."""

    def __init__(self, context: ControllerContext, inventory: Inventory, kubelets: Kubelets, placer: PodPlacer) -> None:
        self._context = context
        self._inventory = inventory
        self._first_awake = frozenset(inventory.first_awake)
        self._placer = placer
        for name in (*NAMESPACES, gpu_operator.NAMESPACE):
            context.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for plural, item in bootstrap.objects():
            context.create(plural, item)
        for kubelet in kubelets:
            self._add_node(kubelet)
        placer.place_daemons(context.create("daemonsets", gpu_operator.device_plugin()), self._with_device_plugin())
        self._place_workloads(after_day=False)
        if self._all_ready():
            self._place_workloads(after_day=True)
        else:
            self._queue = Queue(context.clock, self._add_late_workloads)
            self._unsubscribe = context.store.subscribe(["nodes"], self._node_changed)

    def _add_node(self, kubelet: Kubelet) -> None:
        vm = kubelet.place.vm
        now = self._context.clock.utc()
        node = nodes.new_node(nodes.Boot(vm, kubelet.place.address))
        node["metadata"]["creationTimestamp"] = timestamp(now - _NODE_AGE)
        if self._inventory.cluster_api:
            self._context.create("machines", cluster_api.new_machine(vm))
            node["metadata"]["annotations"] = cluster_api.machine_annotations(vm.name)
        if vm.powered_on:
            self._label_worker(node, vm)
            node["metadata"]["labels"] |= gpu_stack.LABELS if vm.vgpus else {}
            gpus = len(vm.vgpus) if vm.has_device_plugin else 0
            nodes.post_ready(node, now, nodes.Boot(vm, kubelet.place.address, devices=gpus, gpus=gpus))
            self._context.store.create("nodes", node)
            kubelet.start_now(gpus=len(vm.vgpus))
            if nodes.is_control_plane(vm.name):
                self._add_control_plane(vm.name)
            return
        # Kubernetes: the node of a VM that is off stays, with Ready unknown and its taints.
        nodes.post_unknown(node, now - _SILENCE)
        since = timestamp(now - _SILENCE)
        node["spec"]["taints"] = [
            {"key": key, "effect": effect, "timeAdded": since} for key, effect in own_taints(node)
        ]
        self._context.store.create("nodes", node)

    def _with_device_plugin(self) -> list[str]:
        """Return the nodes on which the device plugin runs from the beginning."""
        vms = (vm for vm in self._inventory.vms if vm.has_node and vm.powered_on)
        return [vm.name for vm in vms if vm.vgpus and vm.has_device_plugin]

    def _label_worker(self, node: Object, vm: VmSpec) -> None:
        """Give a worker that runs from the beginning the label of its profile."""
        for group in self._inventory.groups:
            if vm.name in group.workers and vm.vgpus == group.vgpus:
                node["metadata"]["labels"][PROFILE_LABEL] = group.profile

    def _add_control_plane(self, node: str) -> None:
        owner = self._context.store.get("nodes", "", node)
        assert owner is not None
        for name, cpu in _CONTROL_PLANE.items():
            self._context.create("pods", mirror_pod(f"{name}-{node}", owner, cpu, self._context))

    def _place_workloads(self, *, after_day: bool) -> None:
        for workload in self._inventory.workloads:
            if workload.after_day is after_day:
                self._placer.place_pods(self._add_workload(workload))

    def _add_workload(self, workload: Workload) -> Object | None:
        """Create a workload, unless a person has created one of its name."""
        plural = "jobs" if workload.kind == "Job" else "deployments"
        if not workload.replicas or self._context.store.get(plural, "default", workload.name) is not None:
            return None
        if workload.budget:
            self._context.create("poddisruptionbudgets", budget(workload))
        return self._context.create(plural, job(workload) if workload.kind == "Job" else deployment(workload))

    def _node_changed(self, change: Change) -> None:
        if change.object["metadata"]["name"] in self._first_awake and _is_open(change.object):
            self._queue.add(("", ""))

    def _add_late_workloads(self, _: Key) -> None:
        if self._all_ready():
            self._unsubscribe()
            for workload in self._inventory.workloads:
                if workload.after_day:
                    self._add_workload(workload)

    def _all_ready(self) -> bool:
        found = [self._context.store.get("nodes", "", name) for name in self._first_awake]
        return bool(found) and all(node is not None and _is_open(node) for node in found)


def mirror_pod(name: str, node: Object, cpu: str, context: ControllerContext) -> Object:
    """Return the mirror pod of a static pod: bound from the start, and tolerating every NoExecute taint."""
    now = context.clock.utc()
    host = node["metadata"]["name"]
    annotations = {"kubernetes.io/config.mirror": context.store.suffix(16), "kubernetes.io/config.source": "file"}
    container = {
        "name": name.removesuffix(f"-{host}"),
        "image": "control-plane:1.36",
        "resources": {"requests": {"cpu": cpu}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "annotations": annotations,
            "labels": {"component": container["name"], "tier": "control-plane"},
            "ownerReferences": [owner_reference(node) | {"blockOwnerDeletion": False}],
        },
        "spec": {
            "nodeName": host,
            "hostNetwork": True,
            "containers": [container],
            # kubelet: static pods stay whatever happens to their node, and a drain leaves mirror pods alone.
            "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
        },
        "status": {"phase": "Pending"},
    }
    set_condition(pod, now, {"type": "PodScheduled", "status": "True"})
    return pod


def _is_open(node: Object) -> bool:
    """Ready and not cordoned. Pods placed while a worker is closed would not spread over all workers."""
    return is_true(node, "Ready") and not node["spec"].get("unschedulable")


def deployment(workload: Workload) -> Object:
    labels = {"app": workload.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": workload.name, "namespace": "default", "labels": labels},
        "spec": {
            "replicas": workload.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod(workload)},
        },
    }


def pod(workload: Workload) -> Object:
    return gpu_pod(workload) if workload.profile else plain_pod(workload)


def gpu_pod(workload: Workload) -> Object:
    gpu = {nodes.GPU: "1"}
    container = {"name": workload.name, "image": f"{workload.name}:1", "resources": {"limits": gpu, "requests": gpu}}
    # The label says what a worker carries, so pods for tonight's profile wait all day.
    return {"nodeSelector": {PROFILE_LABEL: workload.profile}, "containers": [container]}


def plain_pod(workload: Workload) -> Object:
    """Return a pod without a GPU that spreads over the nodes, as workloads with a budget usually do."""
    requests = {"cpu": "500m", "memory": "512Mi"}
    container = {"name": workload.name, "image": f"{workload.name}:1", "resources": {"requests": requests}}
    # Kubernetes: ScheduleAnyway is a wish, so such pods never wait for it.
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    spread["labelSelector"] = {"matchLabels": {"app": workload.name}}
    return {"containers": [container], "topologySpreadConstraints": [spread]}


def budget(workload: Workload) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": workload.name, "namespace": "default"},
        "spec": {**(workload.budget or {}), "selector": {"matchLabels": {"app": workload.name}}},
    }


def job(workload: Workload) -> Object:
    """Return a Job that starts all pods at once. Evictions are normal for it, so they do not count as failures."""
    # Kubernetes: without this rule, each eviction counts against backoffLimit.
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": workload.name, "namespace": "default"},
        "spec": {
            "parallelism": workload.replicas,
            "completions": workload.replicas,
            "podFailurePolicy": {"rules": [ignore]},
            "template": {
                "metadata": {"labels": {"app": workload.name}},
                "spec": pod(workload) | {"restartPolicy": "Never"},
            },
        },
    }
