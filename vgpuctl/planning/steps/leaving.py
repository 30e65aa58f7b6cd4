"""Down the ladder: cordon → drain → volumes detached → suspend or shut down."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

from vgpuctl.model.change import changed
from vgpuctl.model.conduct import OnStuck
from vgpuctl.model.fleet import Fleet, Node, Power, Worker
from vgpuctl.model.pods import Disk, Pod
from vgpuctl.model.record import LEAVING, Record
from vgpuctl.model.requests import Confirm, DeletePod, Evict, PatchNode, PowerOffVm, Request, ShutDownGuest, SuspendVm
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.planning.drain import (
    budgets_to_pay,
    covering,
    ends_with,
    must_leave,
    objection,
    pods_to_move,
    rivals,
)
from vgpuctl.planning.steps.rung import Rung, node_of, the_node

#: How long pods that were deleted by force may take to go.
FORCED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class Cordon(Rung):
    """Keep new pods away, and record in the same patch what must be given back. Another's cordon stays another's."""

    wish: str
    awake_before: tuple[str, ...] = ()
    vgpus_before: tuple[str, ...] | None = None
    verb: ClassVar[str] = "cordon"

    def done_by(self, worker: Worker) -> bool:
        node = worker.node
        if node is None:
            return True
        return node.unschedulable and node.record is not None and node.record.wish == self.wish

    def _record(self, node: Node, now: str) -> Record:
        ours = not node.unschedulable or (node.record is not None and node.record.cordoned)
        return Record(
            wish=self.wish,
            state=LEAVING,
            since=now,
            cordoned=ours,
            awake_before=self.awake_before,
            vgpus_before=self.vgpus_before,
            marks=node.record.marks if node.record else (),
        )

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        node = node_of(fleet, self.worker)
        patch = PatchNode.recording(node.name, self._record(node, now), unschedulable=True, version=node.version)
        return (patch,)

    def after(self, worker: Worker) -> Worker:
        return worker.with_node(unschedulable=True, record=self._record(the_node(worker), ""))


@dataclass(frozen=True, slots=True)
class Drain(Rung):
    """Evict what must leave, as its budgets allow. Pods that appear late are seen the next time anybody looks."""

    options: DrainOptions = field(default_factory=DrainOptions)
    within_s: float = 600.0
    on_stuck: OnStuck = OnStuck.BACK
    verb: ClassVar[str] = "drain"

    @property
    def deadline_s(self) -> float:  # type: ignore[override]
        match self.on_stuck:
            case OnStuck.WAIT:
                return math.inf
            case OnStuck.FORCE:
                return self.within_s + FORCED_WITHIN_S
        return self.within_s

    def _pods(self, fleet: Fleet) -> tuple[Pod, ...]:
        return pods_to_move(fleet.worker(self.worker), self.options)

    def done_by(self, worker: Worker) -> bool:
        return not _blind(worker) and not pods_to_move(worker, self.options)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        going = (pod for pod in self._pods(fleet) if not pod.terminating and not self._ends_by_itself(fleet, pod))
        return tuple(self._eviction(fleet, pod) for pod in going if objection(pod, self._ours) is None)

    def _ends_by_itself(self, fleet: Fleet, pod: Pod) -> bool:
        return bool(ends_with(fleet, pod, self.options))

    @property
    def _ours(self) -> DrainOptions:
        """Of a workload that somebody has scaled up again the pods are asked for like any other."""
        return replace(self.options, scaled=()) if self.options.scaled else self.options

    def _eviction(self, fleet: Fleet, pod: Pod) -> Evict:
        grace_s = self.options.of(pod.namespace).grace_period_s
        return Evict(pod=pod, grace_period_s=grace_s, budgets=covering(fleet, pod))

    @property
    def overdue_after_s(self) -> float:  # type: ignore[override]
        return self.within_s if self.on_stuck is OnStuck.FORCE else math.inf

    def overdue(self, fleet: Fleet) -> tuple[Request, ...]:
        """By force: what budgets still hold is deleted, with its grace."""
        evictions = (request for request in self.requests(fleet, "") if isinstance(request, Evict))
        return tuple(DeletePod(pod=each.pod, grace_period_s=each.grace_period_s) for each in evictions)

    def after(self, worker: Worker) -> Worker:
        node = worker.node or Node(name=self.worker)
        return changed(worker, node=changed(node, pods=_staying(node, self.options)))

    def waits_for(self, fleet: Fleet) -> str:
        if _blind(fleet.worker(self.worker)):
            return "its node is gone, so nobody can see whether pods run on it"
        pods = self._pods(fleet)
        held = (why for pod in pods if (why := self._held(fleet, pod)))
        return next(held, f"{len(pods)} pod{'s' * (len(pods) != 1)} to go{_slowest(pods)}" if pods else "")

    def failed_for(self, fleet: Fleet) -> str:
        """With the owner of who is in the way: that can be changed."""
        pods = self._pods(fleet)
        pod = next((pod for pod in pods if self._held(fleet, pod)), max(pods, key=_overdue_s, default=None))
        whose = f"; {pod} belongs to {pod.owner}" if pod and pod.owner else ""
        return f"{self.waits_for(fleet)}{whose}"

    def _held(self, fleet: Fleet, pod: Pod) -> str:
        """What this pod waits for before it may end."""
        if workload := ends_with(fleet, pod, self.options):
            return f"{pod} ends with {workload}"
        if why := objection(pod, self._ours) or rivals(fleet, pod, self._ours):
            return why
        spent = (budget for budget in budgets_to_pay(fleet, pod) if budget.allowed <= 0)
        return next((f"{pod} waits for budget {budget}" for budget in spent), "")


def _blind(worker: Worker) -> bool:
    """Its node was deleted and it runs: whether pods do, too, nobody can see."""
    return worker.on and worker.node is None


def _overdue_s(pod: Pod) -> int:
    return pod.overdue_s


def _slowest(pods: tuple[Pod, ...]) -> str:
    """Whoever should have ended long ago, if anybody."""
    late = max(pods, key=_overdue_s)
    return f": {late} should have ended {late.overdue_s} s ago" if late.overdue_s else ""


@dataclass(frozen=True, slots=True)
class WaitDetached(Rung):
    """Nothing is asked of anybody: the cluster takes the volumes of gone pods off the node by itself. A VM that sleeps
    would keep them, and nobody else could mount them."""

    verb: ClassVar[str] = "wait for volumes"
    #: Kubernetes itself detaches by force after six minutes.
    deadline_s: ClassVar[float] = 600.0

    def done_by(self, worker: Worker) -> bool:
        return not _left_behind(worker)

    def after(self, worker: Worker) -> Worker:
        left = _left_behind(worker)
        return worker.with_node(disks=tuple(disk for disk in the_node(worker).disks if disk not in left))

    def waits_for(self, fleet: Fleet) -> str:
        left = _left_behind(fleet.worker(self.worker))
        more = f" and {len(left) - 1} more" if left[1:] else ""
        return f"volume {left[0].claim or left[0].volume}{more} still attached" if left else ""


def _left_behind(worker: Worker) -> tuple[Disk, ...]:
    """Those that no pod of the node claims; of pods that stay the volumes stay, too."""
    if not worker.on or worker.node is None or not worker.node.disks:
        return ()
    claimed = {claim for pod in worker.node.pods for claim in pod.claims}
    return tuple(disk for disk in worker.node.disks if disk.claim not in claimed)


@dataclass(frozen=True, slots=True)
class Suspend(Rung):
    """Freeze the VM; its frame buffer returns to the card."""

    drain: DrainOptions = field(default_factory=DrainOptions)
    verb: ClassVar[str] = "suspend"
    deadline_s: ClassVar[float] = 1800.0

    def done_by(self, worker: Worker) -> bool:
        return not worker.on

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        return (SuspendVm(worker=worker.name, vm=worker.vm, first=_confirm(worker, self.drain)),)

    def after(self, worker: Worker) -> Worker:
        return changed(worker, power=Power.SUSPENDED)


@dataclass(frozen=True, slots=True)
class ShutDown(Rung):
    """Ask the guest to shut down, unless somebody has; its devices may be changed afterwards. Where it is allowed, a
    guest that takes longer than `power_off_after_s`, or cannot be asked, is powered off."""

    power_off_after_s: float | None = None
    drain: DrainOptions = field(default_factory=DrainOptions)
    verb: ClassVar[str] = "shut down"
    effect_s: ClassVar[float] = 600.0

    @property
    def deadline_s(self) -> float:  # type: ignore[override]
        return 600.0 + (self.power_off_after_s or 0.0)

    def describe(self) -> str:
        after = self.power_off_after_s
        return "shut down" if after is None else f"shut down (power off after {after:.0f} s)"

    def waits_for(self, fleet: Fleet) -> str:
        return "its guest shuts down"

    def done_by(self, worker: Worker) -> bool:
        return not worker.on

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        if worker.shutting_down:
            return ()
        may_power_off = self.power_off_after_s is not None
        first = _confirm(worker, self.drain)
        return (ShutDownGuest(worker=worker.name, vm=worker.vm, first=first, or_power_off=may_power_off),)

    @property
    def overdue_after_s(self) -> float:  # type: ignore[override]
        return math.inf if self.power_off_after_s is None else self.power_off_after_s

    def overdue(self, fleet: Fleet) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        return (PowerOffVm(worker=worker.name, vm=worker.vm, first=_confirm(worker, self.drain)),)

    def after(self, worker: Worker) -> Worker:
        return changed(worker, power=Power.OFF, shutting_down=False)


def _confirm(worker: Worker, drain: DrainOptions) -> Confirm | None:
    """One last list of the node's pods: only those may be there that stay."""
    node = worker.node
    return Confirm(node=node.name, expected=frozenset(pod.uid for pod in _staying(node, drain))) if node else None


def _staying(node: Node, drain: DrainOptions) -> tuple[Pod, ...]:
    return tuple(pod for pod in node.pods if not must_leave(pod, drain))
