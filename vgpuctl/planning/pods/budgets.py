"""Budgets that a drain can never satisfy, because the leaving pods have no other place to go.

A budget lets its last pod go only when as many other pods as it wants are healthy, all of them on nodes that stay.
A certain dead end is reckoned generously. Whatever could make a place makes one: a cordon taken off, a node that
becomes Ready, a pod that may end or be preempted. What could only take a place away (spread, anti-affinity, volumes) is
not considered. The number of replicas is taken to stay as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from vgpuctl.basics.names import fold
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.places import Needs
from vgpuctl.model.pods import Budget, Pod
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wish import Wish
from vgpuctl.model.workloads import workload_of
from vgpuctl.planning.cards.releases import stops, vgpus_wished
from vgpuctl.planning.labels import labels_of
from vgpuctl.planning.planner import plan
from vgpuctl.planning.pods.drain import asks_budgets, must_leave
from vgpuctl.planning.pods.node_capacity import STEADY, NodeCapacity, tolerated
from vgpuctl.planning.steps import PowerOn


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
        return f"{' '.join(fold(self.workers))} {never}{together}: {why}."


def dead_ends(fleet: Fleet, wish: Wish) -> Iterator[DeadEnd]:
    """Yield the dead ends of the wish. All leaving workers are judged together; with `max_unavailable`, each alone."""
    leaving = [w for name in wish.workers if (w := fleet.workers.get(name)) and w.node and stops(wish, w)]
    shared = _NodesAndPods(fleet, wish)
    # In waves (decision 0009), other workers may be awake meanwhile and have room for the pods.
    for together in [[worker] for worker in leaving] if wish.max_unavailable else [leaving]:
        held = (pod for worker in together for pod in shared.held(worker))
        concerned = {(b.namespace, b.name): b for pod in held for b in fleet.budgets_over(pod)}
        for budget in concerned.values():
            if found := _BudgetCheck(shared, tuple(together), budget).found():
                yield found


class _NodesAndPods:
    """The facts that all looks share: the pods of each node, and how much room there is."""

    def __init__(self, fleet: Fleet, wish: Wish) -> None:
        self.fleet, self.wish = fleet, wish

    @cached_property
    def places(self) -> dict[str, NodeCapacity]:
        """Return all nodes except the nodes of workers that do not run."""
        workers = {
            w.node.name: NodeCapacity(w.node, len(w.vgpus)) for w in self.fleet.workers.values() if w.node and w.on
        }
        return workers | {node.name: NodeCapacity(node) for node in self.fleet.elsewhere}

    @cached_property
    def pods(self) -> dict[str, list[tuple[str, Pod]]]:
        """Return all pods by namespace, each with the name of its node."""
        found: dict[str, list[tuple[str, Pod]]] = {}
        nodes = [*(w.node for w in self.fleet.workers.values() if w.node), *self.fleet.elsewhere]
        for name, pod in (
            *((node.name, pod) for node in nodes for pod in node.pods),
            *(("", p) for p in self.fleet.waiting),
        ):
            found.setdefault(pod.namespace, []).append((name, pod))
        return found

    def held(self, worker: Worker) -> list[Pod]:
        """Return the worker's pods that must leave and that a budget may hold back.

        Many budgets let pods go that are not ready. Pods of workloads that are scaled to zero need no budget.
        """
        drain = self.wish.drain
        # Kubernetes: unready pods pass a budget with AlwaysAllow, or while enough others are healthy.
        pods = (pod for pod in (worker.node.pods if worker.node else ()) if asks_budgets(pod) and pod.ready)
        # Kubernetes: scaling to zero asks no budget (decision 0013).
        return [pod for pod in pods if must_leave(pod, drain) and not workload_of(pod, drain.scaled)]


class _BudgetCheck:
    """A look at one budget and the workers that leave together."""

    def __init__(self, shared: _NodesAndPods, leaving: tuple[Worker, ...], budget: Budget) -> None:
        self._shared, self._fleet, self._wish, self._budget = shared, shared.fleet, shared.wish, budget
        held = {w.name: [pod for pod in shared.held(w) if _over(budget, pod)] for w in leaving}
        self._held = {name: pods for name, pods in held.items() if pods}
        self._gone = {worker.node.name for worker in leaving if worker.node}
        there = shared.pods.get(budget.namespace, ())
        self._covered = [(name, pod) for name, pod in there if budget.covers.matches(pod.labels) and not pod.finished]

    def found(self) -> DeadEnd | None:
        """Return the dead end; None if the budget can be satisfied, or if too little is known."""
        pods = tuple(pod for several in self._held.values() for pod in several)
        wanted = self._budget.desired
        # Kubernetes: a budget's counts are stale until its controller has seen the last change of the budget.
        if not pods or not self._budget.seen or any(pod.needs is None for pod in pods):
            return None
        sure = self._outside(sure=True)
        if sure + self._room(NodeCapacity.sure_room, wanted - sure) >= wanted:
            return None
        perhaps = self._outside(sure=False)
        short = wanted - perhaps - self._room(NodeCapacity.any_room, wanted - perhaps)
        certain = short > 0 and not self._doubt(pods) and not self._woken(len(pods) - short)
        return DeadEnd(budget=self._budget, pods=pods, workers=tuple(self._held), certain=certain)

    def _stays(self, node: str) -> bool:
        return node in self._shared.places and node not in self._gone

    def _outside(self, *, sure: bool) -> int:
        """Count the budget's pods on nodes that stay: the healthy ones (`sure`), or all that could become healthy."""
        there = (pod for name, pod in self._covered if self._stays(name) and not pod.terminating)
        return sum(pod.ready or not sure for pod in there)

    def _room(self, room: Callable[[NodeCapacity, Needs], int], wanted: int) -> int:
        """Return how many more such pods find room while the last one still waits to go.

        It is never more than the budget expects.
        """
        kinds = {pod.needs for _, pod in self._covered if pod.needs}
        most, found = self._budget.expected - 1 - self._outside(sure=False), 0
        for name, place in self._shared.places.items():
            if found >= wanted:
                break
            found += 0 if name in self._gone else sum(room(place, needs) for needs in kinds)
        return max(0, min(found, most))

    def _doubt(self, pods: Iterable[Pod]) -> bool:
        """True if something could still help, so the dead end is not certain.

        Nodes may be added. Pods may end by themselves, come back different, or be on their way. For workloads that are
        scaled to zero, the budget will expect fewer pods.
        """
        if any(workload_of(pod, self._wish.drain.scaled) for _, pod in self._covered):
            return True
        # A refusal needs certainty. Whatever may still help makes it a remark (architecture.md).
        steady = all((pod.owner or "").startswith(STEADY) for pod in pods)
        missing = sum(not pod.terminating for _, pod in self._covered) < self._budget.expected
        added = not _lets_none_go(self._budget) and any(p.node.autoscaled for p in self._shared.places.values())
        return missing or not steady or added

    def _woken(self, may_go: int) -> bool:
        """True if this wish wakes a place before more than `may_go` of these pods must go."""
        if _lets_none_go(self._budget):
            return False
        asleep = [w for w in self._fleet.workers.values() if not w.on and self._wakes(w)]
        kinds = {pod.needs for pods in self._held.values() for pod in pods if pod.needs}
        places = [w for w in asleep if any(self._would_do(w, needs) for needs in kinds)]
        if not places:
            return False
        needs = plan(self._fleet, self._wish).needs
        first = (needs.get(PowerOn.of(worker.name), frozenset[StepId]()) for worker in places)
        return any(sum(len(self._held.get(step.subject, ())) for step in steps) <= may_go for steps in first)

    def _wakes(self, worker: Worker) -> bool:
        mine = self._wish.workers.get(worker.name)
        return mine is not None and mine.awake is True

    def _would_do(self, worker: Worker, needs: Needs) -> bool:
        """True if a pod may run on this worker with the labels it will bear.

        A worker that never had a node counts as a place.
        """
        ours = labels_of(self._fleet, self._wish.catalogue, worker, vgpus_wished(self._wish, worker))
        labels = {**(worker.node.labels if worker.node else {}), **{key: value for key, value in ours.items() if value}}
        if worker.node is None:
            return True
        return needs.choose(worker.node.name, labels) and tolerated(worker.node.keeps_off, needs, passing=True)


def _lets_none_go(budget: Budget) -> bool:
    return budget.desired >= budget.expected


def _over(budget: Budget, pod: Pod) -> bool:
    return budget.namespace == pod.namespace and budget.covers.matches(pod.labels)
