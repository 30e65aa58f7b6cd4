"""Watches the pods that drains move: how long they take to end, and how long budgets hold the next ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from statistics import median

from vgpuctl.model.fleet import Fleet, Node
from vgpuctl.model.past_pods import PastPods, workload_name
from vgpuctl.model.pods import Pod
from vgpuctl.planning.pods.drain import budgets_to_pay, grace_s, pods_to_move
from vgpuctl.planning.steps import Drain

#: The most workloads that an entry of the journal keeps. Beyond these, a forecast takes graces.
MOST = 200


@dataclass(slots=True)
class _Workload:
    """`evicted_s`: the last eviction. `gaps_s`: what came between evictions in all. `allowed`: what its budget allowed
    before the first; None: no budget covers it."""

    grace_s: float = 0.0
    allowed: int | None = None
    evictions: int = 0
    evicted_s: float = 0.0
    gaps_s: float = 0.0
    ends_s: list[float] = field(default_factory=list)

    def past(self, name: str) -> PastPods:
        rounds = 0 if self.allowed is None else ceil(self.evictions / max(1, self.allowed)) - 1
        refill_s = self.gaps_s / rounds if rounds else None
        return PastPods(workload=name, end_s=median(self.ends_s), grace_s=self.grace_s, refill_s=refill_s)


class PodEnds:
    """Sees the pods of drains that are under way leave."""

    def __init__(self) -> None:
        self._workloads: dict[str, _Workload] = {}
        self._nodes: dict[str, Node | None] = {}
        self._there: dict[str, dict[str, tuple[str, float | None]]] = {}
        self._last_s = 0.0

    def look(self, fleet: Fleet, drains: Iterable[tuple[Drain, float]], now_s: float) -> None:
        """Look at these drains, each with its beginning. Drains that are not among them any more have ended."""
        # A worker may leave vCenter or the files during its drain.
        under_way = {drain.worker: (drain, began_s) for drain, began_s in drains if fleet.find(drain.worker)}
        for worker in self._there.keys() - under_way.keys():
            self._gone(self._there.pop(worker).values(), now_s)
        for worker, (drain, began_s) in under_way.items():
            node = fleet.worker(worker).node
            # An object that did not change stays the same object, so most looks have nothing to do here.
            if worker not in self._there or self._nodes.get(worker) is not node:
                self._nodes[worker] = node
                self._look_at(fleet, drain, began_s, now_s)
        self._last_s = now_s

    def found(self) -> tuple[PastPods, ...]:
        known = [(name, workload) for name, workload in self._workloads.items() if workload.ends_s]
        return tuple(workload.past(name) for name, workload in known[:MOST])

    def _look_at(self, fleet: Fleet, drain: Drain, began_s: float, now_s: float) -> None:
        before, there = self._there.get(drain.worker, {}), dict[str, tuple[str, float | None]]()
        for pod in pods_to_move(fleet.worker(drain.worker), drain.options):
            name, evicted_s = before.get(pod.uid) or (workload_name(pod), None)
            if evicted_s is None and pod.terminating:
                evicted_s = self._evicted(name, began_s, now_s)
            elif evicted_s is None:
                self._note(fleet, pod, name, grace_s(pod, drain.options))
            there[pod.uid] = name, evicted_s
        gone = (before[uid] for uid in before.keys() - there.keys())
        self._there[drain.worker] = there
        self._gone(gone, now_s, began_s)

    def _note(self, fleet: Fleet, pod: Pod, name: str, grace_s: float) -> None:
        """Note what is known of a pod only before its eviction."""
        workload = self._workloads.get(name)
        if workload is None:
            # Only the first sight shows what the budget allows at once: the evictions that follow take from it.
            allowed = min((each.allowed for each in budgets_to_pay(fleet, pod)), default=None)
            workload = self._workloads[name] = _Workload(allowed=allowed)
        workload.grace_s = max(workload.grace_s, grace_s)

    def _evicted(self, name: str, began_s: float, at_s: float) -> float:
        workload = self._workloads.setdefault(name, _Workload())
        # In waves, a drain that begins later than the last eviction was not held by it.
        if workload.evictions:
            workload.gaps_s += max(0.0, at_s - max(workload.evicted_s, began_s))
        workload.evictions, workload.evicted_s = workload.evictions + 1, at_s
        return at_s

    def _gone(self, pods: Iterable[tuple[str, float | None]], now_s: float, began_s: float = 0.0) -> None:
        """A pod that was never seen ending was evicted after the last look."""
        for name, evicted_s in pods:
            since_s = self._evicted(name, began_s, self._last_s) if evicted_s is None else evicted_s
            self._workloads[name].ends_s.append(now_s - since_s)
