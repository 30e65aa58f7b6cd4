"""The DaemonSet controller: one pod on each matching node, cordoned or not, and rollouts within maxUnavailable."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.int_or_percent import amount_of
from vgpuctl.sim.kube.controllers.node_tests import hard_taints, lacks_toleration, node_test
from vgpuctl.sim.kube.controllers.workloads import Workloads, add_labels, new_pod, template_hash
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    is_active,
    is_finished,
    is_leaving,
    is_true,
    labels_of,
    name_of,
)
from vgpuctl.sim.kube.store import Change, key_of

HASH = "controller-revision-hash"
#: Kubernetes: every DaemonSet pod tolerates these, so it stays on a lost node and starts on a cordoned one.
_TOLERATED_TAINTS = (
    *(("node.kubernetes.io/not-ready", "NoExecute"), ("node.kubernetes.io/unreachable", "NoExecute")),
    *((f"node.kubernetes.io/{kind}-pressure", "NoSchedule") for kind in ("disk", "memory", "pid")),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSets(Workloads):
    kind, plural = "DaemonSet", "daemonsets"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        context.store.subscribe(["nodes"], self._node_changed)

    def _node_changed(self, change: Change) -> None:
        if (
            change.before is None
            or change.type == "DELETED"
            or _seen_fields(change.before) != _seen_fields(change.object)
        ):
            for item in self._store.all(self.plural):
                self._queue.add(key_of(item))

    def reconcile(self, item: Object) -> None:
        pods_by_node: dict[str, list[Object]] = {}
        for pod in self.owned_objects(item):
            pods_by_node.setdefault(target_node(pod), []).append(pod)
        fitting = self._fitting_nodes(item)
        for node in fitting:
            self._ensure_one_pod(item, node, pods_by_node.get(node, []))
        for node in pods_by_node.keys() - fitting.keys():
            self._delete_unwanted(item, node, pods_by_node[node])
        self._roll(item, pods_by_node, len(fitting))
        self._set_counts(item, pods_by_node, set(fitting))

    def _fitting_nodes(self, item: Object) -> dict[str, None]:
        pod = daemon_pod(item, "")
        chooses = node_test(item["spec"]["template"]["spec"])
        nodes = self._store.sorted("nodes")
        # Measured: a device plugin got no pod on a cordoned node that had a taint of another program as well.
        return {name_of(node): None for node in nodes if chooses(node) and not lacks_toleration(pod, hard_taints(node))}

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

    def _roll(self, item: Object, pods_by_node: dict[str, list[Object]], desired: int) -> None:
        """Replace outdated pods. Pods on sleeping nodes count as unavailable, so one such node can hold up the whole
        rollout.
        """
        # Kubernetes: OnDelete leaves it to others to delete pods. GPU Operator's driver DaemonSet is of this kind.
        if at(item, "spec.updateStrategy.type") == "OnDelete":
            return
        limit = at(item, "spec.updateStrategy.rollingUpdate.maxUnavailable")
        # Kubernetes: maxUnavailable is 1 by default, and a percentage is rounded up.
        allowed = amount_of(1 if limit is None else limit, desired, up=True)
        revision = template_hash(item["spec"]["template"])
        current = [pods[0] for pods in pods_by_node.values() if pods and not is_leaving(pods[0])]
        # Measured: with maxUnavailable 1 and one sleeping node, no awake node was updated (kubernetes#117658).
        unavailable = sum(not _is_up(pods) for pods in pods_by_node.values())
        outdated = [pod for pod in current if labels_of(pod).get(HASH) != revision]
        # Kubernetes: outdated pods that are not ready go at once; they cannot become less available.
        for pod in [pod for pod in outdated if not is_true(pod, "Ready")]:
            self.delete_pod(item, pod)
        ready_pods = sorted((pod for pod in outdated if is_true(pod, "Ready")), key=name_of)
        for pod in ready_pods[: max(0, allowed - unavailable)]:
            self.delete_pod(item, pod)

    def _set_counts(self, item: Object, pods_by_node: dict[str, list[Object]], fitting: set[str]) -> None:
        revision = template_hash(item["spec"]["template"])
        running_here = [pods for node, pods in pods_by_node.items() if node in fitting and any(map(is_active, pods))]
        ready = sum(_is_up(pods) for pods in running_here)
        updated = sum(any(labels_of(pod).get(HASH) == revision for pod in pods) for pods in running_here)
        status: Object = {"desiredNumberScheduled": len(fitting), "currentNumberScheduled": len(running_here)}
        status |= {"numberMisscheduled": len(pods_by_node.keys() - fitting), "numberReady": ready}
        more = {"updatedNumberScheduled": updated, "numberAvailable": ready, "numberUnavailable": len(fitting) - ready}
        self.set_status(item, status | {name: count for name, count in more.items() if count})


def daemon_pod(item: Object, node: str, suffix: str = "x") -> Object:
    """Return a pod with an affinity for one node, to which the scheduler binds it."""
    pod = new_pod(item, suffix)
    add_labels(pod, {HASH: template_hash(item["spec"]["template"])})
    spec = pod["spec"]
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED_TAINTS]
    spec["tolerations"] = [*(spec.get("tolerations") or []), *tolerations]
    # Kubernetes: the scheduler binds a daemon's pod, too. Its affinity leaves one node.
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}
    spec["affinity"] = (spec.get("affinity") or {}) | {"nodeAffinity": required}
    return pod


def target_node(pod: Object) -> str:
    """Return the node that the pod is made for."""
    terms = at(pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    values = [
        value for term in terms or [] for field in term.get("matchFields") or [] for value in field.get("values") or []
    ]
    return str(values[0] if values else pod["spec"].get("nodeName") or "")


def _is_up(pods: list[Object]) -> bool:
    return any(is_active(pod) and is_true(pod, "Ready") for pod in pods)


def _seen_fields(node: Object) -> tuple[object, ...]:
    return labels_of(node), node["spec"].get("taints"), node["spec"].get("unschedulable")
