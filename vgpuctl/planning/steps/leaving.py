"""Down the ladder: cordon → drain → volumes detached → suspend or shut down."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from vgpuctl.basics.change import changed
from vgpuctl.model.conduct import OnStuck
from vgpuctl.model.fleet import Fleet, Node, Power, Worker
from vgpuctl.model.pods import Disk, Pod
from vgpuctl.model.record import LEAVING, Record
from vgpuctl.model.requests import Confirm, DeletePod, Evict, PatchNode, PowerOffVm, Request, ShutDownGuest, SuspendVm
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.model.wait import UNDER_WAY, Reason, Wait
from vgpuctl.planning.pods.drain import (
    budgets_to_pay,
    covering,
    ends_with,
    grace_s,
    must_leave,
    objection,
    pods_to_move,
    rivals,
)
from vgpuctl.planning.signs import budget_key, pod_key, volume_key
from vgpuctl.planning.steps.step import CHANGE_S, Look, WorkerStep, node_of, state_s, the_node

#: Assumed: how long a guest takes to shut down, and Kubernetes to detach a volume.
SHUT_DOWN_S = 30.0
DETACH_S = 10.0
#: How long pods that were deleted by force may take to go.
FORCED_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class Cordon(WorkerStep):
    """Keep new pods away, and record in the same patch what must be given back.

    Another program's cordon stays its own.
    """

    wish: str
    awake_before: tuple[str, ...] = ()
    vgpus_before: tuple[str, ...] | None = None
    verb: ClassVar[str] = "cordon"
    doing: ClassVar[str] = "cordoning"
    bar: ClassVar[str] = "cordon"

    def is_done(self, worker: Worker) -> bool:
        node = worker.node
        if node is None:
            return True
        return node.unschedulable and node.record is not None and node.record.wish == self.wish

    def _record(self, node: Node, now: str) -> Record:
        # Decision 0002: a cordon that was there before us is recorded but not claimed.
        # Measured: a second `kubectl cordon` changes nothing on the node, so a person's later wish cannot be seen.
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
        # A cordon, and no taint of ours: DaemonSet pods tolerate only the cordon.
        # Measured: a device plugin that tolerates only `nvidia.com/gpu` got no pod on a node with such a taint.
        patch = PatchNode.recording(node.name, self._record(node, now), unschedulable=True, version=node.version)
        return (patch,)

    def applied(self, worker: Worker) -> Worker:
        return worker.with_node(unschedulable=True, record=self._record(the_node(worker), ""))


@dataclass(frozen=True, slots=True)
class Drain(WorkerStep):
    """Evict the pods that must leave, as their budgets allow. Pods that appear late are seen at the next look."""

    options: DrainOptions = field(default_factory=DrainOptions)
    within_s: float = 600.0
    on_stuck: OnStuck = OnStuck.BACK
    verb: ClassVar[str] = "drain"
    doing: ClassVar[str] = "draining"
    finished: ClassVar[str] = "drained"
    bar: ClassVar[str] = "drain"
    look: ClassVar[Look] = Look.DRAIN
    lasts: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True

    @property
    def deadline_s(self) -> float:  # type: ignore[override]
        # kubectl drain hangs on a budget for ever; here a timetable decides what follows (docs/how-to/went-back.md).
        match self.on_stuck:
            case OnStuck.WAIT:
                return math.inf
            case OnStuck.FORCE:
                return self.within_s + FORCED_WITHIN_S
        return self.within_s

    def pods_of(self, worker: Worker) -> tuple[Pod, ...]:
        """Return the pods that the step still has to move."""
        return pods_to_move(worker, self.options)

    def _pods(self, fleet: Fleet) -> tuple[Pod, ...]:
        return self.pods_of(fleet.worker(self.worker))

    def assumed_s(self, fleet: Fleet) -> float:
        """Return the longest grace of its pods. No plan can know how long budgets hold a pod."""
        # Kubernetes: a pod's grace period may be an hour, and the forecast says so before the switch begins.
        longest_s = max((grace_s(pod, self.options) for pod in self._pods(fleet)), default=0)
        return min(self.within_s, longest_s)

    def is_done(self, worker: Worker) -> bool:
        # What cannot be seen drained is not drained: the pods of a deleted node may still run.
        return not _blind(worker) and not self.pods_of(worker)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        # Kubernetes: pods of a workload at zero are ended by its controller, which asks no budget (decision 0013).
        going = (pod for pod in self._pods(fleet) if not pod.terminating and not self._ends_by_itself(fleet, pod))
        return tuple(self._eviction(fleet, pod) for pod in going if objection(pod, self._ours) is None)

    def _ends_by_itself(self, fleet: Fleet, pod: Pod) -> bool:
        return bool(ends_with(fleet, pod, self.options))

    @property
    def _ours(self) -> DrainOptions:
        """Return the options without scaled workloads.

        If a workload was scaled up again, its pods are evicted like any other.
        """
        return replace(self.options, scaled=()) if self.options.scaled else self.options

    def _eviction(self, fleet: Fleet, pod: Pod) -> Evict:
        grace_s = self.options.of(pod.namespace).grace_period_s
        # Kubernetes: an eviction asks the budgets. With the pod's UID, it cannot hit a new pod of the same name.
        return Evict(pod=pod, grace_period_s=grace_s, budgets=covering(fleet, pod))

    @property
    def overdue_after_s(self) -> float:  # type: ignore[override]
        return self.within_s if self.on_stuck is OnStuck.FORCE else math.inf

    def overdue(self, fleet: Fleet) -> tuple[Request, ...]:
        """Return forced deletions: pods that budgets still hold are deleted, with their grace."""
        # A deletion asks no budget. It is sent only where the timetable says `on_stuck: force`.
        evictions = (request for request in self.requests(fleet, "") if isinstance(request, Evict))
        return tuple(DeletePod(pod=each.pod, grace_period_s=each.grace_period_s) for each in evictions)

    def applied(self, worker: Worker) -> Worker:
        node = worker.node or Node(name=self.worker)
        return changed(worker, node=changed(node, pods=_staying(node, self.options)))

    def waits_for(self, fleet: Fleet) -> Wait:
        if _blind(fleet.worker(self.worker)):
            return Wait(Reason.NODE_GONE)
        pods = self._pods(fleet)
        if not pods:
            return UNDER_WAY
        held = (wait for pod in pods if (wait := self._held(fleet, pod)))
        return next(held, Wait.of(Reason.PODS, f"{len(pods)} pod{'s' * (len(pods) != 1)}", _slowest(pods)))

    def to_blame(self, fleet: Fleet) -> str:
        """Return the owner of the pod that is in the way."""
        pods = self._pods(fleet)
        pod = next((pod for pod in pods if self._held(fleet, pod)), max(pods, key=_overdue_s, default=None))
        return f"{pod} belongs to {pod.owner}" if pod and pod.owner else ""

    def hangs_on(self, fleet: Fleet) -> Iterable[str]:
        """Return the pods that are still there, the held ones first, and the budgets that hold them."""
        pods = sorted(self._pods(fleet), key=lambda pod: self._held(fleet, pod) is None)
        budgets = (budget_key(budget) for pod in pods for budget in budgets_to_pay(fleet, pod))
        return (*WorkerStep.hangs_on(self, fleet), *budgets, *(pod_key(self.worker, pod) for pod in pods))

    def _held(self, fleet: Fleet, pod: Pod) -> Wait | None:
        """Return what this pod waits for before it may end."""
        if workload := ends_with(fleet, pod, self.options):
            return Wait.of(Reason.POD_OF_WORKLOAD, pod, workload)
        if why := objection(pod, self._ours):
            return Wait.of(Reason.POD_NOT_ALLOWED, why)
        if why := rivals(fleet, pod, self._ours):
            return Wait.of(Reason.SEVERAL_BUDGETS, why)
        spent = (budget for budget in budgets_to_pay(fleet, pod) if budget.allowed <= 0)
        return next((Wait.of(Reason.BUDGET, pod, budget) for budget in spent), None)


def _blind(worker: Worker) -> bool:
    """True if the worker runs without a node, since the node was deleted: its pods cannot be seen."""
    return worker.on and worker.node is None


def _overdue_s(pod: Pod) -> int:
    return pod.overdue_s


def _slowest(pods: tuple[Pod, ...]) -> str:
    """Name the pod that should have ended longest ago; "" if no pod is late."""
    late = max(pods, key=_overdue_s)
    return f": {late} should have ended {late.overdue_s} s ago" if late.overdue_s else ""


@dataclass(frozen=True, slots=True)
class WaitDetached(WorkerStep):
    """Wait until the cluster has detached the volumes of gone pods; no request is sent.

    A VM that sleeps would keep them, and no other node could mount them.
    """

    verb: ClassVar[str] = "wait for volumes"
    doing: ClassVar[str] = "detaching"
    look: ClassVar[Look] = Look.DRAIN
    lasts: ClassVar[bool] = True
    finished: ClassVar[str] = "detached"
    #: Kubernetes itself detaches by force after six minutes.
    deadline_s: ClassVar[float] = 600.0

    def assumed_s(self, fleet: Fleet) -> float:
        return DETACH_S

    def is_done(self, worker: Worker) -> bool:
        return not _left_behind(worker)

    def applied(self, worker: Worker) -> Worker:
        left = _left_behind(worker)
        return worker.with_node(disks=tuple(disk for disk in the_node(worker).disks if disk not in left))

    def hangs_on(self, fleet: Fleet) -> Iterable[str]:
        left = _left_behind(fleet.worker(self.worker))
        return (*WorkerStep.hangs_on(self, fleet), *(volume_key(self.worker, disk) for disk in left))

    def waits_for(self, fleet: Fleet) -> Wait:
        left = _left_behind(fleet.worker(self.worker))
        more = f" and {len(left) - 1} more" if left[1:] else ""
        return Wait.of(Reason.VOLUME, left[0].claim or left[0].volume, more) if left else UNDER_WAY


def _left_behind(worker: Worker) -> tuple[Disk, ...]:
    """Return the volumes that no pod of the node claims. Volumes of pods that stay remain on the node."""
    if not worker.on or worker.node is None or not worker.node.disks:
        return ()
    # A frozen pod keeps its volumes attached while it sleeps, so they are not waited for.
    claimed = {claim for pod in worker.node.pods for claim in pod.claims}
    return tuple(disk for disk in worker.node.disks if disk.claim not in claimed)


@dataclass(frozen=True, slots=True)
class Suspend(WorkerStep):
    """Freeze the VM; its frame buffer returns to the card."""

    drain: DrainOptions = field(default_factory=DrainOptions)
    verb: ClassVar[str] = "suspend"
    doing: ClassVar[str] = "suspending"
    finished: ClassVar[str] = "suspended"
    bar: ClassVar[str] = "suspend"
    look: ClassVar[Look] = Look.SUSPEND
    lasts: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True
    takes_down: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("suspend",)
    #: vSphere: a suspend takes memory ÷ throughput, minutes for a large VM, and some tasks hang at 95 %.
    deadline_s: ClassVar[float] = 1800.0

    def assumed_s(self, fleet: Fleet) -> float:
        return CHANGE_S + state_s(fleet, self.worker)

    def is_done(self, worker: Worker) -> bool:
        return not worker.on

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        # Kubernetes: no out-of-service taint here. The processes and disks of a suspended VM come back.
        return (SuspendVm(worker=worker.name, vm=worker.vm, first=_confirm(worker, self.drain)),)

    def applied(self, worker: Worker) -> Worker:
        return changed(worker, power=Power.SUSPENDED)


@dataclass(frozen=True, slots=True)
class ShutDown(WorkerStep):
    """Ask the guest to shut down, unless it is shutting down already; its devices may be changed afterwards.

    If allowed, a guest that takes longer than `power_off_after_s`, or cannot be asked, is powered off.
    """

    power_off_after_s: float | None = None
    drain: DrainOptions = field(default_factory=DrainOptions)
    verb: ClassVar[str] = "shut down"
    doing: ClassVar[str] = "shutting down"
    finished: ClassVar[str] = "shut down"
    bar: ClassVar[str] = "shut down"
    look: ClassVar[Look] = Look.SHUT_DOWN
    lasts: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True
    takes_down: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("powerOff", "shutdownGuest")
    effect_s: ClassVar[float] = 600.0

    @property
    def deadline_s(self) -> float:  # type: ignore[override]
        return 600.0 + (self.power_off_after_s or 0.0)

    def describe(self) -> str:
        after = self.power_off_after_s
        return "shut down" if after is None else f"shut down (power off after {after:.0f} s)"

    def waits_for(self, fleet: Fleet) -> Wait:
        return Wait(Reason.GUEST)

    def assumed_s(self, fleet: Fleet) -> float:
        return SHUT_DOWN_S

    def is_done(self, worker: Worker) -> bool:
        return not worker.on

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        # vSphere: `guest.guestState` says whether the guest shuts down already, whichever program asked it.
        worker = fleet.worker(self.worker)
        if worker.shutting_down:
            return ()
        # vSphere: ShutdownGuest needs running VMware Tools (else ToolsUnavailable).
        may_power_off = self.power_off_after_s is not None
        first = _confirm(worker, self.drain)
        return (ShutDownGuest(worker=worker.name, vm=worker.vm, first=first, or_power_off=may_power_off),)

    @property
    def overdue_after_s(self) -> float:  # type: ignore[override]
        return math.inf if self.power_off_after_s is None else self.power_off_after_s

    def overdue(self, fleet: Fleet) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        return (PowerOffVm(worker=worker.name, vm=worker.vm, first=_confirm(worker, self.drain)),)

    def applied(self, worker: Worker) -> Worker:
        return changed(worker, power=Power.OFF, shutting_down=False)


def _confirm(worker: Worker, drain: DrainOptions) -> Confirm | None:
    """Return a last check of the node's pods: only pods that stay may still be there."""
    # A watch may be late. So law 1 rests on one fresh list of the node's pods, just before the VM stops.
    node = worker.node
    return Confirm(node=node.name, expected=frozenset(pod.uid for pod in _staying(node, drain))) if node else None


def _staying(node: Node, drain: DrainOptions) -> tuple[Pod, ...]:
    return tuple(pod for pod in node.pods if not must_leave(pod, drain))
