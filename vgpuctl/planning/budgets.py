"""Budgets that a drain can never satisfy, because those who leave have no other place to go.

A budget lets the last pod go only when as many others as it wants are healthy, and all of these must be on nodes that
stay. What is said to be certain is reckoned generously: whatever could make a place makes one (a cordon taken off, a
node that becomes Ready, a pod that may end or be preempted); what could only take one away (spread, anti-affinity,
volumes) is not looked at. Replicas are taken to stay as many as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from vgpuctl.model.fleet import Fleet, Node, Worker
from vgpuctl.model.places import Needs, Taint
from vgpuctl.model.pods import GPU_RESOURCE, Budget, Pod
from vgpuctl.model.wish import Wish
from vgpuctl.planning.drain import asks_budgets, must_leave
from vgpuctl.planning.labels import labels_of
from vgpuctl.planning.planner import plan
from vgpuctl.planning.releases import stops, vgpus_wished

#: Taints that come and go with a node's state; all others are taken to stay.
_PASSING = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
)
#: Whose pods are replaced by others like them, and do not end by themselves.
_STEADY = ("ReplicaSet/", "StatefulSet/", "ReplicationController/")
_STAYING = (*_STEADY, "DaemonSet/", "Node/")
_ANY = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEnd:
    """A budget over pods of these workers that none of their drains can satisfy. `certain`: nothing could help."""

    budget: Budget
    pods: tuple[Pod, ...]
    workers: tuple[str, ...]
    certain: bool

    @property
    def message(self) -> str:
        never = "can never be drained" if self.certain else "may never be drained"
        together = " together" if self.workers[1:] else ""
        if _lets_none_go(self.budget):
            why = f"budget {self.budget.name} lets none of its {self.budget.expected} pods go"
        else:
            place = "no node that stays awake has a place for them" if self.certain else "places may not be found"
            why = f"budget {self.budget.name} keeps {self.budget.desired} of {self.budget.expected} pods, and {place}"
        return f"{' '.join(self.workers)} {never}{together}: {why}."


def dead_ends(fleet: Fleet, wish: Wish) -> Iterator[DeadEnd]:
    """All that go at once are looked at together; where only so many may be out, each of them alone."""
    leaving = [w for name in wish.workers if (w := fleet.workers.get(name)) and w.node and stops(wish, w)]
    for together in [[worker] for worker in leaving] if wish.max_unavailable else [leaving]:
        held = (pod for worker in together for pod in _held(fleet, wish, worker))
        concerned = {(b.namespace, b.name): b for pod in held for b in fleet.budgets_over(pod)}
        look = _Look(fleet, wish, tuple(together))
        for budget in concerned.values():
            if found := look.at(budget):
                yield found


def _held(fleet: Fleet, wish: Wish, worker: Worker) -> list[Pod]:
    """Its pods that must leave and that a budget may hold back: those that are not ready may go under many policies."""
    pods = worker.node.pods if worker.node else ()
    return [pod for pod in pods if asks_budgets(pod) and pod.ready and must_leave(pod, wish.drain)]


@dataclass(frozen=True)
class _Look:
    """At those who leave together, and at all nodes and pods besides."""

    fleet: Fleet
    wish: Wish
    leaving: tuple[Worker, ...]

    def at(self, budget: Budget) -> DeadEnd | None:
        """None where it can be satisfied, or where too little is known."""
        mine = {w.name: [pod for pod in _held(self.fleet, self.wish, w) if _over(budget, pod)] for w in self.leaving}
        held = {name: pods for name, pods in mine.items() if pods}
        pods = [pod for several in held.values() for pod in several]
        if not pods or not budget.seen or any(pod.needs is None for pod in pods):
            return None
        if self._outside(budget, sure=True) + self._room(budget, _sure_room) >= budget.desired:
            return None
        short = budget.desired - self._outside(budget, sure=False) - self._room(budget, _any_room)
        certain = short > 0 and not self._doubt(budget, pods) and not self._woken(budget, held, len(pods) - short)
        return DeadEnd(budget=budget, pods=tuple(pods), workers=tuple(held), certain=certain)

    def _outside(self, budget: Budget, *, sure: bool) -> int:
        """How many of its pods are healthy where they may stay, or could become so."""
        there = (pod for place in self._places for pod in place.node.pods if _over(budget, pod))
        return sum(not pod.terminating and not pod.finished and (pod.ready or not sure) for pod in there)

    def _room(self, budget: Budget, room: Callable[[_Place, Needs], int]) -> int:
        """For how many more of such pods, while the last one still waits to go: never more than the budget expects."""
        kinds = {pod.needs for pod in self._covered(budget) if pod.needs}
        found = sum(room(place, needs) for place in self._places for needs in kinds)
        return max(0, min(found, budget.expected - 1 - self._outside(budget, sure=False)))

    @cached_property
    def _places(self) -> list[_Place]:
        """Every node but theirs; of workers only those that run, and are to go on running."""
        gone = {worker.name for worker in self.leaving}
        staying = [w for w in self.fleet.workers.values() if w.node and w.on and w.name not in gone]
        workers = [_Place(w.node, len(w.vgpus)) for w in staying if w.node]
        return [*workers, *(_Place(node) for node in self.fleet.elsewhere)]

    def _covered(self, budget: Budget) -> list[Pod]:
        """All its pods, wherever they are."""
        nodes = [*(w.node for w in self.fleet.workers.values() if w.node), *self.fleet.elsewhere]
        every = (*(pod for node in nodes for pod in node.pods), *self.fleet.waiting)
        return [pod for pod in every if _over(budget, pod) and not pod.finished]

    def _doubt(self, budget: Budget, pods: Iterable[Pod]) -> bool:
        """Nodes may be added; pods may end by themselves, come back otherwise than they went, or be on their way."""
        nodes = (*(place.node for place in self._places), *(w.node for w in self.leaving if w.node))
        steady = all((pod.owner or "").startswith(_STEADY) for pod in pods)
        missing = sum(not pod.terminating for pod in self._covered(budget)) < budget.expected
        return missing or not steady or (not _lets_none_go(budget) and any(node.autoscaled for node in nodes))

    def _woken(self, budget: Budget, held: dict[str, list[Pod]], may_go: int) -> bool:
        """Will a place be woken by the same wish, although only `may_go` of these pods go before?"""
        if _lets_none_go(budget):
            return False
        asleep = [w for w in self.fleet.workers.values() if not w.on and self._wakes(w)]
        kinds = {pod.needs for pods in held.values() for pod in pods if pod.needs}
        places = [w for w in asleep if any(self._would_do(w, needs) for needs in kinds)]
        if not places:
            return False
        needs = plan(self.fleet, self.wish).needs
        first = {w.name: needs.get(f"PowerOn/{w.name}", frozenset()) for w in places}
        return any(
            sum(len(held.get(step.rpartition("/")[2], ())) for step in steps) <= may_go for steps in first.values()
        )

    def _wakes(self, worker: Worker) -> bool:
        mine = self.wish.workers.get(worker.name)
        return mine is not None and mine.awake is True

    def _would_do(self, worker: Worker, needs: Needs) -> bool:
        """With the labels that it will bear; of a worker that never had a node, nothing more is known."""
        told = labels_of(self.fleet, self.wish.catalogue, worker, vgpus_wished(self.wish, worker))
        labels = {**(worker.node.labels if worker.node else {}), **{key: value for key, value in told.items() if value}}
        if worker.node is None:
            return True
        return needs.choose(worker.node.name, labels) and _tolerated(worker.node.keeps_off, needs, passing=True)


@dataclass(frozen=True)
class _Place:
    """A node that stays; `vgpus`: how many its VM carries, whatever its device plugin tells just now."""

    node: Node
    vgpus: int = 0

    def gives(self, resource: str) -> int:
        return dict(self.node.gives).get(resource, 0)


def _lets_none_go(budget: Budget) -> bool:
    return budget.desired >= budget.expected


def _over(budget: Budget, pod: Pod) -> bool:
    return budget.namespace == pod.namespace and budget.covers.matches(pod.labels)


def _sure_room(place: _Place, needs: Needs) -> int:
    """How many such pods the scheduler would place there now."""
    node = place.node
    if not node.ready or node.unschedulable or not _fits(node, needs, passing=False):
        return 0
    return _times(needs, place.gives, [pod for pod in node.pods if not pod.finished])


def _any_room(place: _Place, needs: Needs) -> int:
    """How many could ever be placed there, as far as can be told."""
    node = place.node
    if not _fits(node, needs, passing=True):
        return 0
    if not node.ready:
        return _ANY

    def gives(resource: str) -> int:
        given = place.gives(resource)
        late = resource == GPU_RESOURCE and not given and any(key.startswith(GPU_RESOURCE) for key in node.labels)
        return _ANY if late else max(given, place.vgpus * 1000 if resource == GPU_RESOURCE else 0)

    return _times(needs, gives, [pod for pod in node.pods if _keeps_its_place(pod, needs)])


def _keeps_its_place(pod: Pod, needs: Needs) -> bool:
    """It neither ends by itself nor can be preempted."""
    steady = pod.mirror or (pod.owner or "").startswith(_STAYING)
    weak = pod.needs is not None and pod.needs.priority < needs.priority
    return steady and not weak and not pod.terminating and not pod.finished


def _fits(node: Node, needs: Needs, *, passing: bool) -> bool:
    return needs.choose(node.name, dict(node.labels)) and _tolerated(node.keeps_off, needs, passing=passing)


def _tolerated(taints: Iterable[Taint], needs: Needs, *, passing: bool) -> bool:
    """`passing`: taints that may go away are taken to be gone."""
    return all(needs.tolerate(taint) or (passing and taint.key.startswith(_PASSING)) for taint in taints)


def _times(needs: Needs, gives: Callable[[str], int], there: Iterable[Pod]) -> int:
    """How often these requests go into what the node gives, less what is there."""
    taken: dict[str, int] = {}
    for pod in there:
        for resource, wanted in pod.needs.requests if pod.needs else ():
            taken[resource] = taken.get(resource, 0) + wanted
    asked = [(resource, wanted) for resource, wanted in needs.requests if wanted]
    return max(0, min((int(gives(r) - taken.get(r, 0)) // wanted for r, wanted in asked), default=_ANY))
