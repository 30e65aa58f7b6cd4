"""The scheduler: which node a pod may and should run on, and why not."""

from __future__ import annotations

import json
from collections import Counter

from vgpuctl.sim.kube import nodes
from vgpuctl.sim.kube.ground import Ground, Teller
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    controller_of,
    is_active,
    is_finished,
    is_leaving,
    labels_of,
    name_of,
    namespace_of,
    quantity,
    requests_of,
    set_condition,
    tolerates,
)
from vgpuctl.sim.kube.queue import Queue
from vgpuctl.sim.kube.selectors import selector_test
from vgpuctl.sim.kube.store import Change, Key, key_of

_TELLER = Teller("default-scheduler")
_CORDON = {"key": nodes.UNSCHEDULABLE, "effect": "NoSchedule"}
_FULL = "Insufficient "


class Scheduler:
    """Tries every unbound pod when it appears and again whenever a node or a place changes."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._waiting: dict[Key, None] = {}
        self._queue = Queue(ground.clock, lambda _: self._try_all())
        ground.store.subscribe(["pods"], self._pod_changed)
        ground.store.subscribe(["nodes"], self._node_changed)

    def _pod_changed(self, change: Change) -> None:
        key, pod = key_of(change.object), change.object
        if change.type == "DELETED" or is_finished(pod) or is_leaving(pod) or pod["spec"].get("nodeName"):
            self._waiting.pop(key, None)
            if change.type == "DELETED" or is_finished(pod):
                self._wake()
        elif change.type == "ADDED" or change.before is None or change.before.get("spec") != pod.get("spec"):
            self._waiting[key] = None
            self._wake()

    def _node_changed(self, change: Change) -> None:
        if change.before is None or change.type == "DELETED" or _gist(change.before) != _gist(change.object):
            self._wake()

    def _wake(self) -> None:
        if self._waiting:
            self._queue.add(("", ""))

    def _try_all(self) -> None:
        """Pods that ask for the same and were refused once in this pass are refused without looking again."""
        round_ = Round(self._ground)
        refused: dict[str, str] = {}
        for key in tuple(self._waiting):
            pod = self._ground.store.get("pods", *key)
            if pod is None:
                continue
            kind = _wish(pod)
            node = None if kind in refused else round_.best(pod)
            if node is None:
                refused.setdefault(kind, round_.explain(pod) if kind not in refused else "")
                self._refuse(pod, refused[kind])
            else:
                round_.take(pod, node)
                self._bind(pod, name_of(node))

    def _bind(self, pod: Object, node: str) -> None:
        now = self._ground.clock.utc()

        def bind(item: Object) -> None:
            item["spec"]["nodeName"] = node
            set_condition(item, now, {"type": "PodScheduled", "status": "True"})

        self._ground.store.edit("pods", namespace_of(pod), name_of(pod), bind)
        said = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
        self._ground.tell(pod, _TELLER, "Scheduled", said)

    def _refuse(self, pod: Object, why: str) -> None:
        now = self._ground.clock.utc()
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        before = pod["metadata"]["resourceVersion"]
        after = self._ground.store.edit(
            "pods", namespace_of(pod), name_of(pod), lambda item: set_condition(item, now, said)
        )
        if after is not None and after["metadata"]["resourceVersion"] != before:
            self._ground.tell(pod, _TELLER, "FailedScheduling", why, warning=True)


class Round:
    """One pass over the waiting pods: what is used on each node is counted once and kept up to date."""

    def __init__(self, ground: Ground) -> None:
        self._store = ground.store
        self._nodes = ground.store.sorted("nodes")
        self._pods: dict[str, list[Object]] = {}
        self._used: dict[str, Counter[str]] = {}

    def best(self, pod: Object) -> Object | None:
        """The fewest pods of its kind, then the least asked-for processors, then the name."""
        fitting = [node for node in self._nodes if not self._against(pod, node)]
        return min(fitting, key=lambda node: (self._alike(pod, node), self._load(node), name_of(node)), default=None)

    def take(self, pod: Object, node: Object) -> None:
        self._pods_on(node).append(pod)
        self._used_on(node).update(requests_of(pod))

    def explain(self, pod: Object) -> str:
        against = [self._against(pod, node) for node in self._nodes]
        if not against:
            return "no nodes available to schedule pods"
        total = len(against)
        reasons = Counter(reason for reasons in against for reason in reasons)
        texts = sorted(f"{count} {reason}" for reason, count in reasons.items())
        full = sum(reasons[0].startswith((_FULL, "Too many")) for reasons in against if reasons)
        helpless = [f"{full} No preemption victims found for incoming pod"] if full else []
        helpless += [f"{total - full} Preemption is not helpful for scheduling"] if total > full else []
        said = f"0/{total} nodes are available: "
        return f"{said}{', '.join(texts)}. preemption: {said}{', '.join(helpless)}."

    def _against(self, pod: Object, node: Object) -> list[str]:
        """The first filter that refuses the node, in the real scheduler's order and words."""
        if at(node, "spec.unschedulable") and not tolerates(pod, _CORDON):
            return ["node(s) were unschedulable"]
        taints = [taint for taint in node["spec"].get("taints") or [] if taint["effect"] != "PreferNoSchedule"]
        if any(not tolerates(pod, taint) for taint in taints):
            return ["node(s) had untolerated taint(s)"]
        if not (pod["spec"].get("nodeSelector") or {}).items() <= labels_of(node).items():
            return ["node(s) didn't match Pod's node affinity/selector"]
        return self._lacking(pod, node)

    def _lacking(self, pod: Object, node: Object) -> list[str]:
        room = at(node, "status.allocatable") or {}
        used = self._used_on(node)
        lacking = []
        for resource, amount in requests_of(pod).items():
            # Sums of milli-units are not exact in floating point.
            if used[resource] + amount > quantity(room.get(resource, "0")) + 1e-6:
                lacking.append("Too many pods" if resource == "pods" else f"{_FULL}{resource}")
        return lacking

    def _alike(self, pod: Object, node: Object) -> int:
        spreads = pod["spec"].get("topologySpreadConstraints") or []
        if spreads:
            matches = selector_test(spreads[0].get("labelSelector"))
            alike = [other for other in self._pods_on(node) if matches(labels_of(other))]
            return sum(namespace_of(other) == namespace_of(pod) for other in alike)
        owner = (controller_of(pod) or {}).get("uid")
        return sum((controller_of(other) or {}).get("uid") == owner for other in self._pods_on(node)) if owner else 0

    def _load(self, node: Object) -> float:
        return self._used_on(node)["cpu"] / max(0.001, quantity(at(node, "status.allocatable.cpu") or "0"))

    def _pods_on(self, node: Object) -> list[Object]:
        name = name_of(node)
        if name not in self._pods:
            found = self._store.where("pods", "spec.nodeName", name)
            # A leaving pod keeps its resources until it is gone, but no longer counts as one of its kind.
            self._pods[name] = [pod for pod in found if is_active(pod)]
            self._used[name] = Counter()
            for pod in found:
                if not is_finished(pod):
                    self._used[name].update(requests_of(pod))
        return self._pods[name]

    def _used_on(self, node: Object) -> Counter[str]:
        self._pods_on(node)
        return self._used[name_of(node)]


def _gist(node: Object) -> tuple[object, ...]:
    """What of a node matters here: not its heartbeats."""
    return node.get("spec"), labels_of(node), at(node, "status.allocatable")


def _wish(pod: Object) -> str:
    spec = pod["spec"]
    asks = [requests_of(pod), spec.get("nodeSelector"), spec.get("tolerations")]
    return json.dumps(asks, sort_keys=True)
