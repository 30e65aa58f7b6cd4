"""Cluster API's controllers, as far as workers notice them: Machines, and the health check that replaces
silent ones.
"""

from __future__ import annotations

from vgpuctl.sim.inventory import Durations, VmSpec
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import Object, annotations_of, at, condition, from_timestamp, is_true, name_of
from vgpuctl.sim.kube.store import Change, Key, key_of

NAMESPACE = "default"
#: Cluster API: a Machine with this annotation is never replaced. Its value does not matter.
SKIP = "cluster.x-k8s.io/skip-remediation"
_CLUSTER = "gpu"
_EVENT_SOURCE = EventSource("machinehealthcheck-controller")


def new_machine(vm: VmSpec) -> Object:
    """Return a VM's Machine. For a VM that is off at the beginning it carries the annotation that stops remediation."""
    metadata: Object = {"name": vm.name, "namespace": NAMESPACE, "labels": {"cluster.x-k8s.io/cluster-name": _CLUSTER}}
    # Cluster API replaces the Machine of a node that sleeps. So this estate begins with its sleepers marked.
    if not vm.powered_on:
        metadata["annotations"] = {SKIP: ""}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": metadata,
        # Cluster API: `spec.providerID` names the VM, `status.nodeRef` the node.
        "spec": {"clusterName": _CLUSTER, "providerID": f"vsphere://{vm.uuid}"},
        "status": {"phase": "Running", "nodeRef": {"name": vm.name}},
    }


def machine_annotations(machine: str) -> dict[str, str]:
    """Return the node annotations that name the node's Machine."""
    # Cluster API: so a node leads to its Machine. A node that was deleted registers without them.
    return {"cluster.x-k8s.io/machine": machine, "cluster.x-k8s.io/cluster-namespace": NAMESPACE}


class ClusterApi:
    """Checks a Machine when it or its node changes, and again when the node has been silent for `unhealthy_s`."""

    def __init__(self, context: ControllerContext, durations: Durations) -> None:
        self._context, self._store = context, context.store
        self._durations = durations
        self._queue = Queue(context.clock, self._reconcile)
        context.store.subscribe(["machines"], self._machine_changed)
        context.store.subscribe(["nodes"], self._node_changed)

    def _machine_changed(self, change: Change) -> None:
        self._queue.add(key_of(change.object))

    def _node_changed(self, change: Change) -> None:
        self._queue.add((NAMESPACE, name_of(change.object)))

    def _reconcile(self, key: Key) -> None:
        """Skip a Machine that has had no node yet: it may take any time to start."""
        machine = self._store.get("machines", *key)
        name = at(machine, "status.nodeRef.name") if machine else None
        if machine is None or name is None:
            return
        node = self._store.get("nodes", "", name)
        if node is not None:
            # Cluster API: a node that registered anew gets its annotations again.
            self._annotate(node, machine_annotations(key[1]))
        left_s = self._durations.unhealthy_s - self._silent_s(node)
        # Decision 0014: the mark on the Machine counts, because a node may have lost its annotations.
        if SKIP in annotations_of(machine) or (node is not None and is_true(node, "Ready")):
            return
        if left_s > 0:
            self._context.clock.after(left_s, lambda: self._queue.add(key))
        else:
            self._replace(machine, node)

    def _annotate(self, node: Object, annotations: dict[str, str]) -> None:
        if annotations.items() <= annotations_of(node).items():
            return

        def add_annotations(item: Object) -> None:
            item["metadata"].setdefault("annotations", {}).update(annotations)

        self._store.edit("nodes", "", name_of(node), add_annotations)

    def _silent_s(self, node: Object | None) -> float:
        """Return how long the node has been silent. A deleted node counts as silent for long enough."""
        ready = condition(node, "Ready") if node else None
        # Cluster API: a Machine whose node was deleted is always unhealthy.
        if ready is None:
            return self._durations.unhealthy_s
        return (self._context.clock.utc() - from_timestamp(ready["lastTransitionTime"])).total_seconds()

    def _replace(self, machine: Object, node: Object | None) -> None:
        """Delete the Machine and its node. No new Machine is made here."""
        message = "Machine has been marked as unhealthy"
        self._context.record_event(machine, _EVENT_SOURCE, "MachineMarkedUnhealthy", message)
        self._context.delete("machines", machine)
        if node is not None:
            self._context.delete("nodes", node)
