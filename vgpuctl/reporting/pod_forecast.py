"""Forecasts how long drains take: each pod until it ends, and pods under one budget one after another."""

from __future__ import annotations

from statistics import median

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.past_pods import workload_name
from vgpuctl.model.pods import Budget, Pod
from vgpuctl.planning.pods.drain import budgets_to_pay, grace_s, pods_to_move
from vgpuctl.planning.steps import Drain
from vgpuctl.reporting.step_history import Earlier

#: Assumed: how long a replacement takes to be Ready, after which a budget lets the next pod go.
REFILL_S = 15.0
#: Pods that took this part of their grace were killed when it was over.
KILLED = 0.9


class PodTimes:
    """How long pods take to leave. Drains are asked in the order of the plan, and take from budgets in that order."""

    def __init__(self, fleet: Fleet, earlier: Earlier) -> None:
        self._fleet, self._earlier = fleet, earlier
        self._free_at_s: dict[tuple[str, str], list[float]] = {}
        self._all_refills = [
            past.refill_s for all in earlier.pods.values() for past in all if past.refill_s is not None
        ]

    def takes_s(self, drain: Drain, begins_s: float) -> float:
        """Return how long a drain takes that begins then: until its last pod has ended."""
        longest_s = 0.0
        for pod in pods_to_move(self._fleet.worker(drain.worker), drain.options):
            longest_s = max(longest_s, self._leaves_s(pod, begins_s) - begins_s + self._end_s(pod, drain))
        return longest_s

    def knows(self, drain: Drain) -> bool:
        pods = pods_to_move(self._fleet.worker(drain.worker), drain.options)
        return all(workload_name(pod) in self._earlier.pods for pod in pods)

    def _leaves_s(self, pod: Pod, begins_s: float) -> float:
        """Return when the budgets let the pod go. Each pod that leaves is missing until its replacement is Ready."""
        # Kubernetes: a budget counts pods that are Ready and do not end, so it waits for replacements, not for ends.
        at_s = begins_s
        for budget in budgets_to_pay(self._fleet, pod):
            refill_s = self._refill_s(pod)
            free = self._free_at_s.setdefault((budget.namespace, budget.name), _free_at_s(budget, begins_s + refill_s))
            first = min(range(len(free)), key=free.__getitem__)
            at_s = max(at_s, free[first])
            free[first] = at_s + refill_s
        return at_s

    def _end_s(self, pod: Pod, drain: Drain) -> float:
        """Return how long the pod takes to end: as long as such pods took, and at most its grace."""
        grace = float(grace_s(pod, drain.options))
        # Kubernetes: a container that does not end by itself is killed once the grace is over. Pods that were killed
        # earlier than that say only that it takes longer.
        ends = (
            min(past.end_s, grace)
            for past in self._earlier.pods.get(workload_name(pod), ())
            if past.end_s < KILLED * past.grace_s or past.grace_s >= grace
        )
        return median([*ends] or [grace])

    def _refill_s(self, pod: Pod) -> float:
        own = [past.refill_s for past in self._earlier.pods.get(workload_name(pod), ()) if past.refill_s is not None]
        return median(own or self._all_refills or [REFILL_S])


def _free_at_s(budget: Budget, later_s: float) -> list[float]:
    """Return when the budget lets each of the pods go that it allows at once. One that allows none will, later."""
    return [0.0] * budget.allowed if budget.allowed > 0 else [later_s]
