"""Cluster API's controllers, as far as workers feel them: Machines, and the health check that replaces silent ones."""

from __future__ import annotations

from vgpuctl.sim.inventory import Durations, VmSpec
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, Teller
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import Object, annotations_of, at, condition, from_timestamp, is_true, name_of
from vgpuctl.sim.kube.store import Change, Key, key_of

NAMESPACE = "default"
SKIP = "cluster.x-k8s.io/skip-remediation"
_CLUSTER = "gpu"
_TELLER = Teller("machinehealthcheck-controller")


def new_machine(vm: VmSpec) -> Object:
    """One that was off for long before the world began is there still because somebody has seen to it by hand."""
    metadata: Object = {"name": vm.name, "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/cluster-name": _CLUSTER}}
    if not vm.powered_on:
        metadata["annotations"] = {SKIP: ""}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": metadata,
        "spec": {"clusterName": _CLUSTER, "providerID": f"vsphere://{vm.uuid}"},
        "status": {"phase": "Running", "nodeRef": {"name": vm.name}},
    }


def named_on_node(machine: str) -> dict[str, str]:
    """The annotations that tell of a node which Machine it is."""
    return {"cluster.x-k8s.io/machine": machine, "cluster.x-k8s.io/cluster-namespace": NAMESPACE}


class ClusterApi:
    """Looks at a Machine when it or its node changes, and once more when that node has been silent for too long."""

    def __init__(self, context: ControllerContext, durations: Durations) -> None:
        self._context, self._store = context, context.store
        self._durations = durations
        self._queue = Queue(context.clock, self._look)
        context.store.subscribe(["machines"], self._machine_changed)
        context.store.subscribe(["nodes"], self._node_changed)

    def _machine_changed(self, change: Change) -> None:
        self._queue.add(key_of(change.object))

    def _node_changed(self, change: Change) -> None:
        self._queue.add((NAMESPACE, name_of(change.object)))

    def _look(self, key: Key) -> None:
        """One that has had no node yet is given all the time it wants."""
        machine = self._store.get("machines", *key)
        name = at(machine, "status.nodeRef.name") if machine else None
        if machine is None or name is None:
            return
        node = self._store.get("nodes", "", name)
        if node is not None:
            self._name_on(node, named_on_node(key[1]))
        left_s = self._durations.unhealthy_s - self._silent_s(node)
        if SKIP in annotations_of(machine) or (node is not None and is_true(node, "Ready")):
            return
        if left_s > 0:
            self._context.clock.after(left_s, lambda: self._queue.add(key))
        else:
            self._replace(machine, node)

    def _name_on(self, node: Object, annotations: dict[str, str]) -> None:
        if annotations.items() <= annotations_of(node).items():
            return

        def name(item: Object) -> None:
            item["metadata"].setdefault("annotations", {}).update(annotations)

        self._store.edit("nodes", "", name_of(node), name)

    def _silent_s(self, node: Object | None) -> float:
        """A node that is gone has been silent for long enough."""
        ready = condition(node, "Ready") if node else None
        if ready is None:
            return self._durations.unhealthy_s
        return (self._context.clock.utc() - from_timestamp(ready["lastTransitionTime"])).total_seconds()

    def _replace(self, machine: Object, node: Object | None) -> None:
        """The Machine goes, and its node with it; nobody here makes another."""
        self._context.tell(machine, _TELLER, "MachineMarkedUnhealthy", "Machine has been marked as unhealthy")
        self._context.delete("machines", machine)
        if node is not None:
            self._context.delete("nodes", node)
