"""DaemonSets: a pod on each node that fits, cordoned or not; a rollout goes no faster than its pods come up."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.fitting import chosen_nodes, keeps_pods_off, untolerated
from vgpuctl.sim.kube.controllers.int_or_percent import share
from vgpuctl.sim.kube.controllers.workloads import Workloads, fingerprint, marked, new_pod
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
_EVERYWHERE = (
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
        if change.before is None or change.type == "DELETED" or _gist(change.before) != _gist(change.object):
            for item in self._store.all(self.plural):
                self._queue.add(key_of(item))

    def tend(self, item: Object) -> None:
        there: dict[str, list[Object]] = {}
        for pod in self.possessions(item):
            there.setdefault(node_of(pod), []).append(pod)
        fitting = self._fitting(item)
        for node in fitting:
            self._keep_one(item, node, there.get(node, []))
        for node in there.keys() - fitting.keys():
            self._leave(item, node, there[node])
        self._roll(item, there, len(fitting))
        self._count(item, there, set(fitting))

    def _fitting(self, item: Object) -> dict[str, None]:
        pod = daemon_pod(item, "")
        chooses = chosen_nodes(item["spec"]["template"]["spec"])
        nodes = self._store.sorted("nodes")
        return {name_of(node): None for node in nodes if chooses(node) and not untolerated(pod, keeps_pods_off(node))}

    def _keep_one(self, item: Object, node: str, pods: list[Object]) -> None:
        for pod in pods:
            if is_finished(pod) and not is_leaving(pod):
                self._context.delete("pods", pod)
        if not pods:
            self.add(item, daemon_pod(item, node, self._store.suffix()))

    def _leave(self, item: Object, node: str, pods: list[Object]) -> None:
        """A taint that only keeps new pods off does not drive this one away; another choice of nodes does."""
        found = self._store.get("nodes", "", node)
        if found is None or not chosen_nodes(item["spec"]["template"]["spec"])(found):
            for pod in pods:
                if not is_leaving(pod):
                    self.drop(item, pod)

    def _roll(self, item: Object, there: dict[str, list[Object]], desired: int) -> None:
        """Pods that are down count, also on nodes that sleep: one of them can hold up the rollout everywhere."""
        if at(item, "spec.updateStrategy.type") == "OnDelete":
            return
        limit = at(item, "spec.updateStrategy.rollingUpdate.maxUnavailable")
        allowed = share(1 if limit is None else limit, desired, up=True)
        revision = fingerprint(item["spec"]["template"])
        alone = [pods[0] for pods in there.values() if pods and not is_leaving(pods[0])]
        down = sum(not _up(pods) for pods in there.values())
        stale = [pod for pod in alone if labels_of(pod).get(HASH) != revision]
        for pod in [pod for pod in stale if not is_true(pod, "Ready")]:
            self.drop(item, pod)
        running = sorted((pod for pod in stale if is_true(pod, "Ready")), key=name_of)
        for pod in running[: max(0, allowed - down)]:
            self.drop(item, pod)

    def _count(self, item: Object, there: dict[str, list[Object]], fitting: set[str]) -> None:
        revision = fingerprint(item["spec"]["template"])
        here = [pods for node, pods in there.items() if node in fitting and any(map(is_active, pods))]
        ready = sum(_up(pods) for pods in here)
        fresh = sum(any(labels_of(pod).get(HASH) == revision for pod in pods) for pods in here)
        status: Object = {"desiredNumberScheduled": len(fitting), "currentNumberScheduled": len(here)}
        status |= {"numberMisscheduled": len(there.keys() - fitting), "numberReady": ready}
        more = {"updatedNumberScheduled": fresh, "numberAvailable": ready, "numberUnavailable": len(fitting) - ready}
        self.note(item, status | {name: count for name, count in more.items() if count})


def daemon_pod(item: Object, node: str, suffix: str = "x") -> Object:
    """Bound by the scheduler like any other, to the one node that its affinity names."""
    pod = new_pod(item, suffix)
    marked(pod, {HASH: fingerprint(item["spec"]["template"])})
    spec = pod["spec"]
    tolerations = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _EVERYWHERE]
    spec["tolerations"] = [*(spec.get("tolerations") or []), *tolerations]
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}
    spec["affinity"] = (spec.get("affinity") or {}) | {"nodeAffinity": required}
    return pod


def node_of(pod: Object) -> str:
    """Where it is meant to be."""
    terms = at(pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    values = [
        value for term in terms or [] for field in term.get("matchFields") or [] for value in field.get("values") or []
    ]
    return str(values[0] if values else pod["spec"].get("nodeName") or "")


def _up(pods: list[Object]) -> bool:
    return any(is_active(pod) and is_true(pod, "Ready") for pod in pods)


def _gist(node: Object) -> tuple[object, ...]:
    return labels_of(node), node["spec"].get("taints"), node["spec"].get("unschedulable")
