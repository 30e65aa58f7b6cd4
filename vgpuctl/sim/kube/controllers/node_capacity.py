"""What every node offers and what is taken of it, kept up to date as pods and nodes change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vgpuctl.sim.kube.api.selectors import LabelTest
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.fitting import keeps_pods_off
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    controller_of,
    is_finished,
    is_leaving,
    labels_of,
    name_of,
    namespace_of,
    quantity,
    requests_of,
    uid_of,
)
from vgpuctl.sim.kube.store import Change


class Room:
    """One node: what it offers, and the pods that hold a part of it until they are finished or gone."""

    __slots__ = ("closed", "load", "node", "offers", "pods", "taints", "used")

    def __init__(self) -> None:
        self.node: Object | None = None
        self.closed = False
        self.load = 0.0
        self.taints: list[Object] = []
        self.offers: dict[str, float] = {}
        self.used: dict[str, float] = {}
        self.pods: dict[str, Object] = {}

    def show(self, node: Object) -> None:
        self.node = node
        self.closed = bool(at(node, "spec.unschedulable"))
        self.taints = keeps_pods_off(node)
        self.offers = {name: quantity(amount) for name, amount in (at(node, "status.allocatable") or {}).items()}
        self._weigh()

    def put(self, pod: Object) -> None:
        if uid_of(pod) not in self.pods:
            self._count(pod, 1)
        self.pods[uid_of(pod)] = pod

    def take(self, pod: Object) -> None:
        if self.pods.pop(uid_of(pod), None) is not None:
            self._count(pod, -1)

    def like(self, namespace: str, matches: LabelTest) -> int:
        """A leaving pod keeps its resources until it is gone, but no longer counts as one of its kind."""
        pods = [pod for pod in self.pods.values() if namespace_of(pod) == namespace and not is_leaving(pod)]
        return sum(matches(labels_of(pod)) for pod in pods)

    def owned(self, owner: str) -> int:
        pods = [pod for pod in self.pods.values() if not is_leaving(pod)]
        return sum((controller_of(pod) or {}).get("uid") == owner for pod in pods)

    def _count(self, pod: Object, sign: int) -> None:
        for resource, amount in requests_of(pod).items():
            self.used[resource] = self.used.get(resource, 0.0) + sign * amount
        self._weigh()

    def _weigh(self) -> None:
        self.load = self.used.get("cpu", 0.0) / max(0.001, self.offers.get("cpu", 0.0))


class NodeCapacity:
    """All rooms, found by name or by a label of their nodes. `stirred`: where something may have become free."""

    def __init__(self, context: ControllerContext) -> None:
        self.stirred: set[str] = set()
        self._rooms: dict[str, Room] = {}
        self._open: dict[str, Room] = {}
        self._by_label: dict[tuple[str, str], set[str]] = {}
        context.store.subscribe(["nodes"], self._node_changed)
        context.store.subscribe(["pods"], self._pod_changed)

    def __getitem__(self, name: str) -> Room:
        return self._open[name]

    def __contains__(self, name: str) -> bool:
        return name in self._open

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def there(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self._open]

    def labelled(self, wanted: Object | None) -> Iterable[str]:
        """The nodes that may match a nodeSelector: those with the rarest of its labels."""
        if not wanted:
            return self._open
        return min((self._by_label.get(pair, set()) for pair in wanted.items()), key=len)

    def _node_changed(self, change: Change) -> None:
        name = name_of(change.object)
        if change.type == "DELETED":
            self._index(name, labels_of(change.object), {})
            self._open.pop(name, None)
        elif change.before is None or _gist(change.before) != _gist(change.object):
            self._index(name, labels_of(change.before) if change.before else {}, labels_of(change.object))
            self._open[name] = self._room(name)
            self._open[name].show(change.object)
            self.stirred.add(name)

    def _index(self, name: str, before: dict[str, str], after: dict[str, str]) -> None:
        for pair in before.items() - after.items():
            self._by_label[pair].discard(name)
        for pair in after.items() - before.items():
            self._by_label.setdefault(pair, set()).add(name)

    def _pod_changed(self, change: Change) -> None:
        was = _holds(change.before) if change.before else ""
        now = _holds(change.object) if change.type != "DELETED" else ""
        if was and was != now:
            self._room(was).take(change.object)
            self.stirred.add(was)
        if now:
            self._room(now).put(change.object)

    def _room(self, name: str) -> Room:
        return self._rooms.setdefault(name, Room())


def _holds(pod: Object) -> str:
    """The node of which a pod holds a part."""
    return "" if is_finished(pod) else pod["spec"].get("nodeName") or ""


def _gist(node: Object) -> tuple[object, ...]:
    """What of a node matters here: not its heartbeats."""
    return node.get("spec"), labels_of(node), at(node, "status.allocatable")
