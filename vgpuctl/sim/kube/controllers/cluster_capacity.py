"""What every node offers and what its pods use, kept up to date as pods and nodes change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vgpuctl.sim.kube.api.selectors import LabelTest
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.node_tests import hard_taints
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    controller_of,
    is_finished,
    is_leaving,
    labels_of,
    name_of,
    namespace_of,
    requests_of,
    uid_of,
)
from vgpuctl.sim.kube.quantities import quantity
from vgpuctl.sim.kube.store import Change


class NodeUsage:
    """One node: what it offers, and the pods that use it until they are finished or gone."""

    __slots__ = ("cordoned", "load", "node", "offers", "pods", "taints", "used")

    def __init__(self) -> None:
        self.node: Object | None = None
        self.cordoned = False
        self.load = 0.0
        self.taints: list[Object] = []
        self.offers: dict[str, float] = {}
        self.used: dict[str, float] = {}
        self.pods: dict[str, Object] = {}

    def set_node(self, node: Object) -> None:
        self.node = node
        self.cordoned = bool(at(node, "spec.unschedulable"))
        self.taints = hard_taints(node)
        self.offers = {name: quantity(amount) for name, amount in (at(node, "status.allocatable") or {}).items()}
        self._update_load()

    def add_pod(self, pod: Object) -> None:
        if uid_of(pod) not in self.pods:
            self._count(pod, 1)
        self.pods[uid_of(pod)] = pod

    def remove_pod(self, pod: Object) -> None:
        if self.pods.pop(uid_of(pod), None) is not None:
            self._count(pod, -1)

    def count_matching(self, namespace: str, matches: LabelTest) -> int:
        """Count pods by label. A leaving pod still uses resources, but does not count here."""
        pods = [pod for pod in self.pods.values() if namespace_of(pod) == namespace and not is_leaving(pod)]
        return sum(matches(labels_of(pod)) for pod in pods)

    def count_owned(self, owner: str) -> int:
        pods = [pod for pod in self.pods.values() if not is_leaving(pod)]
        return sum((controller_of(pod) or {}).get("uid") == owner for pod in pods)

    def _count(self, pod: Object, sign: int) -> None:
        for resource, amount in requests_of(pod).items():
            self.used[resource] = self.used.get(resource, 0.0) + sign * amount
        self._update_load()

    def _update_load(self) -> None:
        self.load = self.used.get("cpu", 0.0) / max(0.001, self.offers.get("cpu", 0.0))


class ClusterCapacity:
    """The usage of all nodes, by name or label. `changed_nodes`: nodes where room may have become free."""

    def __init__(self, context: ControllerContext) -> None:
        self.changed_nodes: set[str] = set()
        self._usage: dict[str, NodeUsage] = {}
        self._present: dict[str, NodeUsage] = {}
        self._by_label: dict[tuple[str, str], set[str]] = {}
        context.store.subscribe(["nodes"], self._node_changed)
        context.store.subscribe(["pods"], self._pod_changed)

    def __getitem__(self, name: str) -> NodeUsage:
        return self._present[name]

    def __contains__(self, name: str) -> bool:
        return name in self._present

    def __len__(self) -> int:
        return len(self._present)

    def __iter__(self) -> Iterator[str]:
        return iter(self._present)

    def present(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self._present]

    def with_labels(self, wanted: Object | None) -> Iterable[str]:
        """Return a superset of the nodes that match a nodeSelector: those with the rarest of its labels."""
        if not wanted:
            return self._present
        return min((self._by_label.get(pair, set()) for pair in wanted.items()), key=len)

    def _node_changed(self, change: Change) -> None:
        name = name_of(change.object)
        if change.type == "DELETED":
            self._index(name, labels_of(change.object), {})
            self._present.pop(name, None)
        elif change.before is None or _seen_fields(change.before) != _seen_fields(change.object):
            self._index(name, labels_of(change.before) if change.before else {}, labels_of(change.object))
            self._present[name] = self._usage_of(name)
            self._present[name].set_node(change.object)
            self.changed_nodes.add(name)

    def _index(self, name: str, before: dict[str, str], after: dict[str, str]) -> None:
        for pair in before.items() - after.items():
            self._by_label[pair].discard(name)
        for pair in after.items() - before.items():
            self._by_label.setdefault(pair, set()).add(name)

    def _pod_changed(self, change: Change) -> None:
        was = _node_held(change.before) if change.before else ""
        now = _node_held(change.object) if change.type != "DELETED" else ""
        if was and was != now:
            self._usage_of(was).remove_pod(change.object)
            self.changed_nodes.add(was)
        if now:
            self._usage_of(now).add_pod(change.object)

    def _usage_of(self, name: str) -> NodeUsage:
        return self._usage.setdefault(name, NodeUsage())


def _node_held(pod: Object) -> str:
    """Return the node whose resources the pod uses, or nothing."""
    # kube-scheduler: a finished pod holds nothing, although it still has its node.
    return "" if is_finished(pod) else pod["spec"].get("nodeName") or ""


def _seen_fields(node: Object) -> tuple[object, ...]:
    """Return the fields that matter for capacity. Heartbeats are not among them."""
    return node.get("spec"), labels_of(node), at(node, "status.allocatable")
