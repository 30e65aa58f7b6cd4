"""Pods that a drain may not or can never remove, and workloads that cannot be scaled to zero."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vgpuctl.model.conduct import OnStuck
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.model.workloads import Workload, workload_of
from vgpuctl.planning.pods.budgets import DeadEnd, dead_ends
from vgpuctl.planning.pods.drain import leaving_pods, objection, rivals


@dataclass(frozen=True, kw_only=True)
class NoNode(Refusal):
    code = "VG201"
    title = "A VM runs and has no Kubernetes node, so nothing shows whether pods run on it."
    way_out = "Register its node, or shut the VM down yourself."

    worker: str

    @property
    def message(self) -> str:
        return f"{self.worker} runs, but has no Kubernetes node: nothing shows whether pods run on it."


@dataclass(frozen=True, kw_only=True)
class PodsNotAllowed(Refusal):
    code = "VG202"
    title = "A drain may not delete some of the pods on a node."
    way_out = (
        "Remove these pods, or allow it in the timetable's drain settings. If several budgets cover a pod, leave one."
    )

    worker: str
    pods: tuple[str, ...]

    @property
    def message(self) -> str:
        count = f"{len(self.pods)} pod{'s' * (len(self.pods) != 1)}"
        return f"{self.worker} cannot be drained: {count} may not be deleted."

    @property
    def details(self) -> tuple[str, ...]:
        return self.pods


@dataclass(frozen=True, kw_only=True)
class BudgetDeadEnd(Refusal):
    code = "VG203"
    title = "A disruption budget can never allow the drain: its pods have no other place to go."
    way_out = "Scale the workload to zero for the shift (scale), change the budget, or set on_stuck: force."

    end: DeadEnd

    @property
    def message(self) -> str:
        return self.end.message

    @property
    def details(self) -> tuple[str, ...]:
        return tuple(str(pod) for pod in self.end.pods)


@dataclass(frozen=True, kw_only=True)
class SizeDecidedElsewhere(Refusal):
    code = "VG204"
    title = "Another program sets the size of a workload that the shift scales to zero; its pods would come back."
    way_out = "Take the workload out of that program's hands, or out of the shift's scale list."

    workload: Workload

    @property
    def message(self) -> str:
        return f"{self.workload.key} cannot be scaled to zero: {self.workload.decided_by}."

    @property
    def hint(self) -> str:
        return self.workload.way_out or self.way_out


def against_drain(fleet: Fleet, wish: Wish, worker: Worker) -> Iterator[Refusal]:
    # Kubernetes: what cannot be seen drained is not drained, so a VM without a node is not stopped.
    if worker.node is None:
        # A worker in doubt is reported already, and its doubts leave open which node is its own.
        if not worker.doubts:
            yield NoNode(host=worker.host, worker=worker.name)
        return
    pods = leaving_pods(worker.node, wish.drain)
    # kubectl drain refuses before the first eviction; here all pods of the node are listed at once.
    found = [why for pod in pods if (why := objection(pod, wish.drain) or rivals(fleet, pod, wish.drain))]
    if found:
        yield PodsNotAllowed(host=worker.host, worker=worker.name, pods=tuple(found))


def against_budgets(fleet: Fleet, wish: Wish) -> Iterator[Refusal]:
    """Refuse drains that budgets make impossible. If stuck pods are deleted by force, no budget is a dead end."""
    # Kubernetes: if every node that its pods may use leaves, their replacements stay Pending.
    # Then a budget that keeps one pod blocks the drain for ever. For day and night shifts that is the usual case.
    for end in dead_ends(fleet, wish) if wish.conduct.on_stuck is not OnStuck.FORCE else ():
        for host in dict.fromkeys(fleet.host_of(worker) for worker in end.workers) if end.certain else ():
            yield BudgetDeadEnd(host=host, end=end)


def against_scaling(fleet: Fleet, wish: Wish, leaving: Iterable[Worker]) -> Iterator[Refusal]:
    """Refuse workloads whose size another program decides: their pods would come back while we scale down."""
    concerned: dict[tuple[str, str], Workload] = {}
    for worker in leaving:
        for pod in worker.node.pods if worker.node else ():
            workload = workload_of(pod, wish.drain.scaled)
            # Kubernetes: an autoscaler, KEDA or a program that applies Git writes the replicas again (decision 0013).
            if workload is not None and workload.decided_by and workload.scaled is None:
                concerned[worker.host, workload.key] = workload
    for (host, _), workload in concerned.items():
        yield SizeDecidedElsewhere(host=host, workload=workload)
