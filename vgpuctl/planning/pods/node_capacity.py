"""How many pods a node has room for: surely, as the scheduler would decide now; or perhaps, if all turns out well."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vgpuctl.model.fleet import Node
from vgpuctl.model.places import Needs, Taint
from vgpuctl.model.pods import GPU_RESOURCE, Pod

#: Taints that come and go with a node's state. All other taints are taken to stay.
_PASSING = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
)
#: Owners whose pods do not end by themselves, and are replaced by new ones that are alike.
STEADY = ("ReplicaSet/", "StatefulSet/", "ReplicationController/")
STAYING = (*STEADY, "DaemonSet/", "Node/")
_ANY = 1_000_000


class NodeCapacity:
    """The room on a node that runs. `vgpus`: how many its VM carries, whatever its device plugin reports just now."""

    def __init__(self, node: Node, vgpus: int = 0) -> None:
        self.node, self._vgpus, self._gives = node, vgpus, dict(node.gives)
        self._taken: dict[int | None, dict[str, int]] = {}

    def sure_room(self, needs: Needs) -> int:
        """Return how many such pods the scheduler would place there now."""
        if not self.node.ready or self.node.unschedulable or not self._takes(needs, passing=False):
            return 0
        return self._times(needs, lambda resource: self._gives.get(resource, 0), None)

    def any_room(self, needs: Needs) -> int:
        """Return how many such pods could ever be placed there, as far as that can be known."""
        if not self._takes(needs, passing=True):
            return 0
        return self._times(needs, self._may_give, needs.priority) if self.node.ready else _ANY

    def _may_give(self, resource: str) -> int:
        given = self._gives.get(resource, 0)
        # After a resume the GPU stack may take 3 to 5 minutes, so a labelled node may yet offer GPUs.
        late = resource == GPU_RESOURCE and not given and any(key.startswith(GPU_RESOURCE) for key in self.node.labels)
        return _ANY * 1000 if late else max(given, self._vgpus * 1000 if resource == GPU_RESOURCE else 0)

    def _takes(self, needs: Needs, *, passing: bool) -> bool:
        return needs.choose(self.node.name, self.node.labels) and tolerated(self.node.keeps_off, needs, passing=passing)

    def _times(self, needs: Needs, gives: Callable[[str], int], priority: int | None) -> int:
        """Return how often these requests fit into what the node gives, less what is taken."""
        if priority not in self._taken:
            self._taken[priority] = self._sum(priority)
        taken = self._taken[priority]
        asked = [(resource, wanted) for resource, wanted in needs.requests if wanted]
        return max(0, min(((gives(r) - taken.get(r, 0)) // wanted for r, wanted in asked), default=_ANY))

    def _sum(self, priority: int | None) -> dict[str, int]:
        """Return what pods take on the node.

        With a priority, only pods count that do not end and that the priority cannot preempt.
        """
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
    """True if a pod with these needs tolerates the taints. `passing`: taints that may go away count as gone."""
    return all(needs.tolerate(taint) or (passing and taint.key.startswith(_PASSING)) for taint in taints)
