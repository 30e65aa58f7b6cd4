"""What pods need from a node, and which node is the best for them."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable

from vgpuctl.sim.kube.api.selectors import selector_test
from vgpuctl.sim.kube.controllers.cluster_capacity import ClusterCapacity, NodeUsage
from vgpuctl.sim.kube.controllers.node_tests import lacks_toleration, named_nodes, node_test
from vgpuctl.sim.kube.machines import nodes
from vgpuctl.sim.kube.objects import Object, controller_of, namespace_of, requests_of, tolerates

_CORDON_TAINT = {"key": nodes.UNSCHEDULABLE, "effect": "NoSchedule"}
INSUFFICIENT = "Insufficient "
TOO_MANY_PODS = "Too many pods"
Rank = tuple[int, float, str]


class PodRequirements:
    """What a pod needs from a node. Pods with equal requirements are placed or refused alike."""

    def __init__(self, pod: Object) -> None:
        self.pod = pod
        self.requests = requests_of(pod)
        self.accepts = node_test(pod["spec"])
        self._owner = (controller_of(pod) or {}).get("uid")
        spreads = pod["spec"].get("topologySpreadConstraints") or []
        self._matches_spread = selector_test(spreads[0].get("labelSelector")) if spreads else None

    def refusals(self, usage: NodeUsage) -> list[str]:
        """Return the messages of the first filter that refuses the node, in the real scheduler's order and words."""
        # kube-scheduler: NodeUnschedulable, TaintToleration, NodeAffinity, NodeResourcesFit.
        # The first that refuses is reported.
        if usage.cordoned and not tolerates(self.pod, _CORDON_TAINT):
            return ["node(s) were unschedulable"]
        if lacks_toleration(self.pod, usage.taints):
            return ["node(s) had untolerated taint(s)"]
        if usage.node is None or not self.accepts(usage.node):
            return ["node(s) didn't match Pod's node affinity/selector"]
        return self.missing_resources(usage)

    def missing_resources(self, usage: NodeUsage) -> list[str]:
        """Return a message for each resource that does not suffice. The tolerance is for sums of floats in
        milli-units.
        """
        used, offers = usage.used, usage.offers
        over = [name for name, n in self.requests.items() if used.get(name, 0.0) + n > offers.get(name, 0.0) + 1e-6]
        return [TOO_MANY_PODS if name == "pods" else f"{INSUFFICIENT}{name}" for name in over]

    def rank(self, name: str, usage: NodeUsage) -> Rank:
        """Rank by the number of similar pods, then by requested CPU, then by name. The smallest rank wins."""
        if self._matches_spread:
            matching = usage.count_matching(namespace_of(self.pod), self._matches_spread)
        else:
            matching = usage.count_owned(self._owner) if self._owner else 0
        # kube-scheduler has many scores and breaks ties by chance. This order is simpler, and the same in each run.
        return matching, usage.load, name


class NodeChoice:
    """Gives the nodes for one kind of pod, best first. Nodes only fill up while it is used, so ranks only grow.

    A node's rank is computed only when it reaches the top of the heap; until then it counts as without similar pods.
    """

    def __init__(self, capacity: ClusterCapacity, requirements: PodRequirements, names: Iterable[str]) -> None:
        self._capacity = capacity
        self._requirements = requirements
        self._heap: list[Rank] = [(0, capacity[name].load, name) for name in names]
        heapq.heapify(self._heap)

    def best(self) -> str | None:
        while self._heap:
            name = self._heap[0][2]
            usage = self._capacity[name]
            if self._requirements.refusals(usage):
                heapq.heappop(self._heap)
            elif (rank := self._requirements.rank(name, usage)) != self._heap[0]:
                heapq.heapreplace(self._heap, rank)
            else:
                return name
        return None


def candidates_for(capacity: ClusterCapacity, requirements: PodRequirements) -> NodeChoice:
    """Return the choice among all nodes of the cluster."""
    spec = requirements.pod["spec"]
    named = named_nodes(spec)
    names = capacity.with_labels(spec.get("nodeSelector")) if named is None else capacity.present(named)
    return NodeChoice(capacity, requirements, names)


def requirements_key(pod: Object) -> str:
    """Return a text that is equal for pods with equal requirements."""
    spec = pod["spec"]
    asks = [spec.get(part) for part in ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")]
    owner = (controller_of(pod) or {}).get("uid")
    return json.dumps([requests_of(pod), owner, namespace_of(pod), *asks], sort_keys=True)
