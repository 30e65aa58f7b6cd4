"""Places the pods of workloads that run from the beginning, without waiting for controllers and kubelets."""

from __future__ import annotations

from datetime import timedelta

from vgpuctl.sim.kube.controllers.cluster_capacity import ClusterCapacity
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.daemonsets import daemon_affinity, daemon_pod
from vgpuctl.sim.kube.controllers.deployments import new_replica_set
from vgpuctl.sim.kube.controllers.jobs import TRACKING
from vgpuctl.sim.kube.controllers.node_choice import PodRequirements, candidates_for
from vgpuctl.sim.kube.controllers.workloads import new_pod
from vgpuctl.sim.kube.machines import pod_status
from vgpuctl.sim.kube.machines.kubelets import Kubelets
from vgpuctl.sim.kube.objects import Object, set_condition, timestamp

_AGE = timedelta(days=7)


class PodPlacer:
    def __init__(self, context: ControllerContext, capacity: ClusterCapacity, kubelets: Kubelets) -> None:
        self._context = context
        self._capacity = capacity
        self._kubelets = kubelets

    def place_pods(self, owner: Object | None) -> None:
        """Place the owner's pods. Those without room are left to the controllers, which create them as Pending."""
        if owner is None:
            return
        pod_owner = new_replica_set(owner) if owner["kind"] == "Deployment" else owner
        template_pod = self._context.prepared("pods", new_pod(self._with_uid(pod_owner), ""))
        candidates = candidates_for(self._capacity, PodRequirements(template_pod))
        if candidates.best() is None:
            return
        wanted: int = owner["spec"].get("replicas") or owner["spec"].get("parallelism") or 1
        if owner["kind"] == "Job":
            template_pod["metadata"]["finalizers"] = [TRACKING]
        if owner["kind"] == "Deployment":
            pod_owner["spec"]["replicas"] = wanted
            self._context.create("replicasets", pod_owner)
        for _ in range(wanted):
            if node := candidates.best():
                self._place(template_pod, node)

    def place_daemons(self, daemon_set: Object, nodes: list[str]) -> None:
        """Place a DaemonSet's pod on each of these nodes."""
        template_pod = self._context.prepared("pods", daemon_pod(daemon_set, ""))
        for node in nodes:
            affinity = daemon_affinity(node)
            self._place(template_pod | {"spec": template_pod["spec"] | {"affinity": affinity}}, node)

    def _with_uid(self, owner: Object) -> Object:
        owner["metadata"].setdefault("uid", self._context.store.new_uid())
        return owner

    def _place(self, template_pod: Object, node: str) -> None:
        """Store one running pod. Worlds have thousands of these, so what they have in common is shared and
        not copied.
        """
        store, now = self._context.store, self._context.clock.utc() - _AGE
        metadata = template_pod["metadata"]
        own_metadata = {"name": f"{metadata['generateName']}{store.suffix()}", "uid": store.new_uid()}
        own_metadata["creationTimestamp"] = timestamp(now)
        pod = template_pod | {"metadata": metadata | own_metadata, "spec": template_pod["spec"] | {"nodeName": node}}
        pod["status"] = dict(template_pod["status"])
        kubelet = self._kubelets[node]
        set_condition(pod, now, {"type": "PodScheduled", "status": "True"})
        pod_status.creating(pod, now, kubelet.place.address)
        pod_status.running(pod, now, kubelet.pods.adopt(pod))
        store.create("pods", pod)
