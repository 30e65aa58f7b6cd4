"""How many pods a node has room for: surely, as the scheduler would say now; or perhaps, if all turns out well."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vgpuctl.model.fleet import Node
from vgpuctl.model.places import Needs, Taint
from vgpuctl.model.pods import GPU_RESOURCE, Pod

#: Taints that come and go with a node's state; all others are taken to stay.
_PASSING = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
)
#: Whose pods are replaced by others like them, and do not end by themselves.
STEADY = ("ReplicaSet/", "StatefulSet/", "ReplicationController/")
STAYING = (*STEADY, "DaemonSet/", "Node/")
_ANY = 1_000_000


class NodeCapacity:
    """A node that runs; `vgpus`: how many its VM carries, whatever its device plugin tells just now."""

    def __init__(self, node: Node, vgpus: int = 0) -> None:
        self.node, self._vgpus, self._gives = node, vgpus, dict(node.gives)
        self._taken: dict[int | None, dict[str, int]] = {}

    def sure_room(self, needs: Needs) -> int:
        """How many such pods the scheduler would place there now."""
        if not self.node.ready or self.node.unschedulable or not self._takes(needs, passing=False):
            return 0
        return self._times(needs, lambda resource: self._gives.get(resource, 0), None)

    def any_room(self, needs: Needs) -> int:
        """How many could ever be placed there, as far as can be told."""
        if not self._takes(needs, passing=True):
            return 0
        return self._times(needs, self._may_give, needs.priority) if self.node.ready else _ANY

    def _may_give(self, resource: str) -> int:
        given = self._gives.get(resource, 0)
        late = resource == GPU_RESOURCE and not given and any(key.startswith(GPU_RESOURCE) for key in self.node.labels)
        return _ANY * 1000 if late else max(given, self._vgpus * 1000 if resource == GPU_RESOURCE else 0)

    def _takes(self, needs: Needs, *, passing: bool) -> bool:
        return needs.choose(self.node.name, self.node.labels) and tolerated(self.node.keeps_off, needs, passing=passing)

    def _times(self, needs: Needs, gives: Callable[[str], int], priority: int | None) -> int:
        """How often these requests go into what the node gives, less what is there."""
        if priority not in self._taken:
            self._taken[priority] = self._sum(priority)
        taken = self._taken[priority]
        asked = [(resource, wanted) for resource, wanted in needs.requests if wanted]
        return max(0, min(((gives(r) - taken.get(r, 0)) // wanted for r, wanted in asked), default=_ANY))

    def _sum(self, priority: int | None) -> dict[str, int]:
        """What pods take there: all of them, or, with a priority, those that neither end nor can be preempted by it."""
        taken: dict[str, int] = {}
        for pod in self.node.pods:
            if pod.finished or (priority is not None and not _keeps_its_place(pod, priority)):
                continue
            for resource, wanted in pod.needs.requests if pod.needs else ():
                taken[resource] = taken.get(resource, 0) + wanted
        return taken


def _keeps_its_place(pod: Pod, priority: int) -> bool:
    steady = pod.mirror or (pod.owner or "").startswith(STAYING)
    weak = pod.needs is not None and pod.needs.priority < priority
    return steady and not weak and not pod.terminating


def tolerated(taints: Iterable[Taint], needs: Needs, *, passing: bool) -> bool:
    """`passing`: taints that may go away are taken to be gone."""
    return all(needs.tolerate(taint) or (passing and taint.key.startswith(_PASSING)) for taint in taints)
