"""The DaemonSet controller: one pod on each matching node, cordoned or not, and rollouts within maxUnavailable."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.sim.kube.controllers.cluster_capacity import ClusterCapacity
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.daemon_coverage import HASH, Coverage, Mark
from vgpuctl.sim.kube.controllers.int_or_percent import amount_of
from vgpuctl.sim.kube.controllers.node_tests import hard_taints, lacks_toleration, node_test
from vgpuctl.sim.kube.controllers.workloads import Workloads, add_labels, new_pod, template_hash
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    controller_of,
    is_finished,
    is_leaving,
    is_true,
    labels_of,
    name_of,
    uid_of,
)
from vgpuctl.sim.kube.store import Change, key_of

#: Kubernetes: every DaemonSet pod tolerates these, so it stays on a lost node and starts on a cordoned one.
_TOLERATED_TAINTS = (
    *(("node.kubernetes.io/not-ready", "NoExecute"), ("node.kubernetes.io/unreachable", "NoExecute")),
    *((f"node.kubernetes.io/{kind}-pressure", "NoSchedule") for kind in ("disk", "memory", "pid")),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSets(Workloads):
    kind, plural = "DaemonSet", "daemonsets"

    def __init__(self, context: ControllerContext, capacity: ClusterCapacity) -> None:
        self._coverages: dict[str, Coverage] = {}
        super().__init__(context)
        self._capacity = capacity
        context.store.subscribe([self.plural], self._forget_deleted)
        context.store.subscribe(["nodes"], self._node_changed)

    def _forget_deleted(self, change: Change) -> None:
        if change.type == "DELETED":
            self._coverages.pop(uid_of(change.object), None)

    def _node_changed(self, change: Change) -> None:
        if (
            change.before is None
            or change.type == "DELETED"
            or _seen_fields(change.before) != _seen_fields(change.object)
        ):
            for item in self._store.all(self.plural):
                if _concerns(item, change):
                    self._coverage(uid_of(item)).dirty[name_of(change.object)] = None
                    self._queue.add(key_of(item))

    def _owned_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == self.kind:
            self._coverage(owner["uid"]).pod_changed(target_node(change.object), change)
            super()._owned_changed(change)

    def _coverage(self, uid: str) -> Coverage:
        return self._coverages.setdefault(uid, Coverage())

    def reconcile(self, item: Object) -> None:
        coverage = self._coverage(uid_of(item))
        if coverage.generation != item["metadata"]["generation"]:
            selector = at(item, "spec.template.spec.nodeSelector")
            coverage.spec_changed(item["metadata"]["generation"], self._capacity.with_labels(selector))
        fits, revision = self._fit_test(item), template_hash(item["spec"]["template"])
        for node in coverage.take_dirty():
            pods, fitting = coverage.pods_on(node), fits(node)
            coverage.mark(node, revision, fits=fitting)
            if fitting:
                self._ensure_one_pod(item, node, pods)
            elif pods:
                self._delete_unwanted(item, node, pods)
        self._roll(item, coverage)
        self._set_counts(item, coverage)

    def _fit_test(self, item: Object) -> Callable[[str], bool]:
        pod, chooses = daemon_pod(item, ""), node_test(item["spec"]["template"]["spec"])

        def fits(name: str) -> bool:
            node = self._store.get("nodes", "", name)
            # Measured: a device plugin got no pod on a cordoned node that had a taint of another program as well.
            return node is not None and chooses(node) and not lacks_toleration(pod, hard_taints(node))

        return fits

    def _ensure_one_pod(self, item: Object, node: str, pods: list[Object]) -> None:
        for pod in pods:
            # Kubernetes: a daemon's pod that has ended is deleted and made anew.
            if is_finished(pod) and not is_leaving(pod):
                self._context.delete("pods", pod)
        if not pods:
            self.create_pod(item, daemon_pod(item, node, self._store.suffix()))

    def _delete_unwanted(self, item: Object, node: str, pods: list[Object]) -> None:
        """Delete pods from nodes that the DaemonSet no longer selects. A NoSchedule taint only keeps new pods off."""
        found = self._store.get("nodes", "", node)
        if found is None or not node_test(item["spec"]["template"]["spec"])(found):
            for pod in pods:
                if not is_leaving(pod):
                    self.delete_pod(item, pod)

    def _roll(self, item: Object, coverage: Coverage) -> None:
        """Replace outdated pods. Pods on sleeping nodes count as unavailable, so one such node can hold up the whole
        rollout.
        """
        # Kubernetes: OnDelete leaves it to others to delete pods. GPU Operator's driver DaemonSet is of this kind.
        if at(item, "spec.updateStrategy.type") == "OnDelete":
            return
        limit = at(item, "spec.updateStrategy.rollingUpdate.maxUnavailable")
        # Kubernetes: maxUnavailable is 1 by default, and a percentage is rounded up.
        allowed = amount_of(1 if limit is None else limit, coverage.count(Mark.DESIRED), up=True)
        # Measured: with maxUnavailable 1 and one sleeping node, no awake node was updated (kubernetes#117658).
        unavailable, outdated = coverage.count(Mark.UNAVAILABLE), coverage.outdated_pods()
        # Kubernetes: outdated pods that are not ready go at once; they cannot become less available.
        for pod in [pod for pod in outdated if not is_true(pod, "Ready")]:
            self.delete_pod(item, pod)
        ready_pods = sorted((pod for pod in outdated if is_true(pod, "Ready")), key=name_of)
        for pod in ready_pods[: max(0, allowed - unavailable)]:
            self.delete_pod(item, pod)

    def _set_counts(self, item: Object, coverage: Coverage) -> None:
        desired, ready = coverage.count(Mark.DESIRED), coverage.count(Mark.READY)
        status: Object = {
            "desiredNumberScheduled": desired,
            "currentNumberScheduled": coverage.count(Mark.SCHEDULED),
            "numberMisscheduled": coverage.count(Mark.MISSCHEDULED),
            "numberReady": ready,
        }
        more = {
            "updatedNumberScheduled": coverage.count(Mark.UPDATED),
            "numberAvailable": ready,
            "numberUnavailable": desired - ready,
        }
        self.set_status(item, status | {name: count for name, count in more.items() if count})


def daemon_pod(item: Object, node: str, suffix: str = "x") -> Object:
    """Return a pod with an affinity for one node, to which the scheduler binds it."""
    pod = new_pod(item, suffix)
    add_labels(pod, {HASH: template_hash(item["spec"]["template"])})
    spec = pod["spec"]
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED_TAINTS]
    spec["tolerations"] = [*(spec.get("tolerations") or []), *tolerations]
    spec["affinity"] = (spec.get("affinity") or {}) | daemon_affinity(node)
    return pod


def daemon_affinity(node: str) -> Object:
    # Kubernetes: the scheduler binds a daemon's pod, too. Its affinity leaves one node.
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}}


def target_node(pod: Object) -> str:
    """Return the node that the pod is made for."""
    terms = at(pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    values = [
        value for term in terms or [] for field in term.get("matchFields") or [] for value in field.get("values") or []
    ]
    return str(values[0] if values else pod["spec"].get("nodeName") or "")


def _concerns(item: Object, change: Change) -> bool:
    """Return True if the DaemonSet's nodeSelector fits the node, or fitted it before the change."""
    # Most nodes of a large cluster have no GPU, so what happens to them is nothing to a device plugin.
    wanted = (at(item, "spec.template.spec.nodeSelector") or {}).items()
    return any(node is not None and wanted <= labels_of(node).items() for node in (change.before, change.object))


def _seen_fields(node: Object) -> tuple[object, ...]:
    return labels_of(node), node["spec"].get("taints"), node["spec"].get("unschedulable")
