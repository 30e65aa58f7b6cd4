"""What pods ask of nodes, and which node is the best for one of them."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable

from vgpuctl.sim.kube.api.selectors import selector_test
from vgpuctl.sim.kube.controllers.fitting import chosen_nodes, named_nodes, untolerated
from vgpuctl.sim.kube.controllers.node_capacity import NodeCapacity, Room
from vgpuctl.sim.kube.machines import nodes
from vgpuctl.sim.kube.objects import Object, controller_of, namespace_of, requests_of, tolerates

_CORDON = {"key": nodes.UNSCHEDULABLE, "effect": "NoSchedule"}
FULL = "Insufficient "
CROWDED = "Too many pods"
Rank = tuple[int, float, str]


class Wish:
    """What a pod asks of a node. Pods with the same wish are served or refused alike."""

    def __init__(self, pod: Object) -> None:
        self.pod = pod
        self.requests = requests_of(pod)
        self.chooses = chosen_nodes(pod["spec"])
        self._owner = (controller_of(pod) or {}).get("uid")
        spreads = pod["spec"].get("topologySpreadConstraints") or []
        self._alike = selector_test(spreads[0].get("labelSelector")) if spreads else None

    def against(self, room: Room) -> list[str]:
        """The first filter that refuses the node, in the real scheduler's order and words."""
        if room.closed and not tolerates(self.pod, _CORDON):
            return ["node(s) were unschedulable"]
        if untolerated(self.pod, room.taints):
            return ["node(s) had untolerated taint(s)"]
        if room.node is None or not self.chooses(room.node):
            return ["node(s) didn't match Pod's node affinity/selector"]
        return self.lacking(room)

    def lacking(self, room: Room) -> list[str]:
        """Sums of milli-units are not exact in floating point."""
        used, offers = room.used, room.offers
        over = [name for name, n in self.requests.items() if used.get(name, 0.0) + n > offers.get(name, 0.0) + 1e-6]
        return [CROWDED if name == "pods" else f"{FULL}{name}" for name in over]

    def rank(self, name: str, room: Room) -> Rank:
        """The fewest pods of its kind, then the least asked-for processors, then the name."""
        if self._alike:
            alike = room.like(namespace_of(self.pod), self._alike)
        else:
            alike = room.owned(self._owner) if self._owner else 0
        return alike, room.load, name


class NodeChoice:
    """The nodes for one wish, best first. Nodes only fill up while it is used, so ranks only grow.

    A node is looked at only when it comes to the top: until then it stands there as if it had none of the kind.
    """

    def __init__(self, board: NodeCapacity, wish: Wish, names: Iterable[str]) -> None:
        self._board = board
        self._wish = wish
        self._heap: list[Rank] = [(0, board[name].load, name) for name in names]
        heapq.heapify(self._heap)

    def best(self) -> str | None:
        while self._heap:
            name = self._heap[0][2]
            room = self._board[name]
            if self._wish.against(room):
                heapq.heappop(self._heap)
            elif (rank := self._wish.rank(name, room)) != self._heap[0]:
                heapq.heapreplace(self._heap, rank)
            else:
                return name
        return None


def choice(board: NodeCapacity, wish: Wish) -> NodeChoice:
    """Among all nodes."""
    spec = wish.pod["spec"]
    named = named_nodes(spec)
    return NodeChoice(board, wish, board.labelled(spec.get("nodeSelector")) if named is None else board.there(named))


def kind_of(pod: Object) -> str:
    """Two pods of the same kind have the same wish."""
    spec = pod["spec"]
    asks = [spec.get(part) for part in ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")]
    owner = (controller_of(pod) or {}).get("uid")
    return json.dumps([requests_of(pod), owner, namespace_of(pod), *asks], sort_keys=True)
