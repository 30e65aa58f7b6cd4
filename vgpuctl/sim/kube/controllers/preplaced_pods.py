"""Workloads that have run since long before the world began: their pods stand where there is room, at once."""

from __future__ import annotations

from datetime import timedelta

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.deployments import new_replica_set
from vgpuctl.sim.kube.controllers.jobs import TRACKING
from vgpuctl.sim.kube.controllers.node_capacity import NodeCapacity
from vgpuctl.sim.kube.controllers.node_choice import Wish, choice
from vgpuctl.sim.kube.controllers.workloads import new_pod
from vgpuctl.sim.kube.machines import podlife
from vgpuctl.sim.kube.machines.kubelets import Kubelets
from vgpuctl.sim.kube.objects import Object, set_condition, timestamp

_AGE = timedelta(days=7)


class PodPlacer:
    def __init__(self, context: ControllerContext, board: NodeCapacity, kubelets: Kubelets) -> None:
        self._context = context
        self._board = board
        self._kubelets = kubelets

    def settle(self, owner: Object | None) -> None:
        """What finds no room is left to the controllers, which will have it wait."""
        if owner is None:
            return
        above = new_replica_set(owner) if owner["kind"] == "Deployment" else owner
        first = self._context.prepared("pods", new_pod(self._with_uid(above), ""))
        choose = choice(self._board, Wish(first))
        if choose.best() is None:
            return
        wanted: int = owner["spec"].get("replicas") or owner["spec"].get("parallelism") or 1
        if owner["kind"] == "Job":
            first["metadata"]["finalizers"] = [TRACKING]
        if owner["kind"] == "Deployment":
            above["spec"]["replicas"] = wanted
            self._context.create("replicasets", above)
        for _ in range(wanted):
            if node := choose.best():
                self._place(first, node)

    def _with_uid(self, owner: Object) -> Object:
        owner["metadata"].setdefault("uid", self._context.store.new_uid())
        return owner

    def _place(self, first: Object, node: str) -> None:
        """Thousands of these are made: what all pods of a template have in common is shared, not copied."""
        store, now = self._context.store, self._context.clock.utc() - _AGE
        metadata = first["metadata"]
        own = {"name": f"{metadata['generateName']}{store.suffix()}", "uid": store.new_uid()}
        own["creationTimestamp"] = timestamp(now)
        pod = first | {"metadata": metadata | own, "spec": first["spec"] | {"nodeName": node}}
        pod["status"] = dict(first["status"])
        kubelet = self._kubelets[node]
        set_condition(pod, now, {"type": "PodScheduled", "status": "True"})
        podlife.creating(pod, now, kubelet.place.address)
        podlife.running(pod, now, kubelet.adopt(pod))
        store.create("pods", pod)
