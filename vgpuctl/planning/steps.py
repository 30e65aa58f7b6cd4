"""The rungs of the ladder: cordon → drain → suspend (or shut down → attach) → power on → back → label → uncordon."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from vgpuctl.model.fleet import Fleet, Node, Power, Worker
from vgpuctl.model.record import ASLEEP, LEAVING, Record
from vgpuctl.model.requests import (
    AttachVgpus,
    Confirm,
    Evict,
    PatchNode,
    PowerOnVm,
    Request,
    ShutDownGuest,
    SuspendVm,
)
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.planning.drain import asks_budgets, must_leave, objection, pods_to_move

_BAD_TAINTS = frozenset(
    {
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/not-ready",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.cloudprovider.kubernetes.io/uninitialized",
    }
)


@dataclass(frozen=True, slots=True)
class Rung:
    """What all steps share: the worker they are about, and a name that is the same in every plan."""

    worker: str
    #: How long the step may be due before that counts as a failure.
    deadline_s: ClassVar[float] = 120.0
    #: How long a request that was taken may show no effect before it may be sent again.
    effect_s: ClassVar[float] = 20.0
    verb: ClassVar[str] = ""

    @property
    def name(self) -> str:
        return f"{type(self).__name__}/{self.worker}"

    def describe(self) -> str:
        return self.verb

    def waits_for(self, fleet: Fleet) -> str:
        return ""


def _node(fleet: Fleet, worker: str) -> Node:
    node = fleet.worker(worker).node
    if node is None:
        raise LookupError(f"{worker} has no node")
    return node


@dataclass(frozen=True, slots=True)
class Cordon(Rung):
    """Keep new pods away, and record in the same patch what must be given back. Another's cordon stays another's."""

    wish: str
    awake_before: tuple[str, ...] = ()
    verb: ClassVar[str] = "cordon"

    def done_in(self, fleet: Fleet) -> bool:
        node = fleet.worker(self.worker).node
        if node is None:
            return True
        return node.unschedulable and node.record is not None and node.record.wish == self.wish

    def _record(self, node: Node, now: str) -> Record:
        ours = not node.unschedulable or (node.record is not None and node.record.cordoned)
        return Record(wish=self.wish, state=LEAVING, since=now, cordoned=ours, awake_before=self.awake_before)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        node = _node(fleet, self.worker)
        patch = PatchNode.recording(node.name, self._record(node, now), unschedulable=True, version=node.version)
        return (patch,)

    def applied_to(self, fleet: Fleet) -> Fleet:
        record = self._record(_node(fleet, self.worker), "")
        return fleet.with_node(self.worker, unschedulable=True, record=record)


@dataclass(frozen=True, slots=True)
class Drain(Rung):
    """Evict what must leave, as its budgets allow. Pods that appear late are seen the next time anybody looks."""

    options: DrainOptions = field(default_factory=DrainOptions)
    verb: ClassVar[str] = "drain"

    @property
    def deadline_s(self) -> float:  # type: ignore[override]
        return self.options.timeout_s

    def done_in(self, fleet: Fleet) -> bool:
        return not pods_to_move(fleet.worker(self.worker))

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        pods = pods_to_move(fleet.worker(self.worker))
        going = (pod for pod in pods if not pod.terminating and objection(pod, self.options) is None)
        return tuple(Evict(pod=pod, grace_period_s=self.options.grace_period_s) for pod in going)

    def applied_to(self, fleet: Fleet) -> Fleet:
        node = _node(fleet, self.worker)
        return fleet.with_node(self.worker, pods=tuple(pod for pod in node.pods if not must_leave(pod)))

    def waits_for(self, fleet: Fleet) -> str:
        pods = pods_to_move(fleet.worker(self.worker))
        for pod in pods:
            if why := objection(pod, self.options):
                return why
            for budget in fleet.budgets_over(pod) if asks_budgets(pod) else ():
                if budget.allowed <= 0:
                    return f"{pod} waits for budget {budget.name}"
        return f"{len(pods)} pod{'s' * (len(pods) != 1)} to go" if pods else ""


@dataclass(frozen=True, slots=True)
class Suspend(Rung):
    """Freeze the VM; its frame buffer returns to the card."""

    verb: ClassVar[str] = "suspend"
    deadline_s: ClassVar[float] = 1800.0

    def done_in(self, fleet: Fleet) -> bool:
        return not fleet.worker(self.worker).on

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        return (SuspendVm(worker=worker.name, vm=worker.vm, first=_confirm(worker)),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_worker(self.worker, power=Power.SUSPENDED)


@dataclass(frozen=True, slots=True)
class ShutDown(Rung):
    """Ask the guest to shut down; its devices may be changed afterwards."""

    verb: ClassVar[str] = "shut down"
    deadline_s: ClassVar[float] = 600.0
    effect_s: ClassVar[float] = 600.0

    def done_in(self, fleet: Fleet) -> bool:
        return not fleet.worker(self.worker).on

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        return (ShutDownGuest(worker=worker.name, vm=worker.vm, first=_confirm(worker)),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_worker(self.worker, power=Power.OFF)


def _confirm(worker: Worker) -> Confirm | None:
    """One last list of the node's pods: only those may be there that stay."""
    node = worker.node
    if node is None:
        return None
    return Confirm(node=node.name, expected=frozenset(pod.uid for pod in node.pods if not must_leave(pod)))


@dataclass(frozen=True, slots=True)
class MarkAsleep(Rung):
    """Say on the node that it sleeps, with its last signs of life, so that old evidence is known as old later."""

    wish: str
    awake_before: tuple[str, ...] = ()
    verb: ClassVar[str] = "mark asleep"

    def done_in(self, fleet: Fleet) -> bool:
        worker = fleet.worker(self.worker)
        return worker.on or worker.node is None or (worker.node.unschedulable and _marked(worker.node))

    def _record(self, node: Node, now: str) -> Record:
        ours = not node.unschedulable or (node.record is not None and node.record.cordoned)
        record = node.record or Record(
            wish=self.wish, state=ASLEEP, since=now, cordoned=ours, awake_before=self.awake_before
        )
        return replace(record, cordoned=ours).asleep(since=now, lease=node.lease_renewed, heartbeat=node.heartbeat)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        node = _node(fleet, self.worker)
        patch = PatchNode.recording(node.name, self._record(node, now), unschedulable=True, version=node.version)
        return (patch,)

    def applied_to(self, fleet: Fleet) -> Fleet:
        node = fleet.worker(self.worker).node
        if node is None:
            return fleet
        return fleet.with_node(self.worker, unschedulable=True, record=self._record(node, ""))


def _marked(node: Node) -> bool:
    record = node.record
    return record is not None and record.state == ASLEEP and record.lease == node.lease_renewed


@dataclass(frozen=True, slots=True)
class Attach(Rung):
    """Give a powered-off VM these vGPUs instead of those it has."""

    vgpus: tuple[str, ...]
    verb: ClassVar[str] = "attach"

    def describe(self) -> str:
        return f"attach {' '.join(self.vgpus)}" if self.vgpus else "remove vGPUs"

    def done_in(self, fleet: Fleet) -> bool:
        return equipped(fleet.worker(self.worker), self.vgpus)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        return (AttachVgpus(worker=worker.name, vm=worker.vm, vgpus=self.vgpus),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_worker(self.worker, vgpus=self.vgpus, memory_locked=True)


def equipped(worker: Worker, vgpus: tuple[str, ...]) -> bool:
    """Does the VM carry exactly these vGPUs, with all its memory reserved as they need it?"""
    return sorted(worker.vgpus) == sorted(vgpus) and (worker.memory_locked or not vgpus)


@dataclass(frozen=True, slots=True)
class PowerOn(Rung):
    """Resume or start the VM; vCenter chooses the card."""

    resume: bool = True
    deadline_s: ClassVar[float] = 900.0

    def describe(self) -> str:
        return "resume" if self.resume else "power on"

    def done_in(self, fleet: Fleet) -> bool:
        return fleet.worker(self.worker).on

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        return (PowerOnVm(worker=worker.name, vm=worker.vm),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_worker(self.worker, power=Power.ON)


@dataclass(frozen=True, slots=True)
class WaitBack(Rung):
    """Nothing is asked of anybody: the node must show by itself that it is truly back."""

    verb: ClassVar[str] = "ready"
    deadline_s: ClassVar[float] = 900.0

    def done_in(self, fleet: Fleet) -> bool:
        return not missing_signs(fleet.worker(self.worker))

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        return ()

    def applied_to(self, fleet: Fleet) -> Fleet:
        worker = fleet.worker(self.worker)
        node = worker.node or Node(name=self.worker)
        back = replace(
            node,
            ready=True,
            taints=tuple(taint for taint in node.taints if taint not in _BAD_TAINTS),
            gpus=max(node.gpus, len(worker.vgpus)),
            lease_renewed=f"{node.lease_renewed}+",
            heartbeat=f"{node.heartbeat}+",
        )
        return fleet.with_worker(self.worker, node=back)

    def waits_for(self, fleet: Fleet) -> str:
        return missing_signs(fleet.worker(self.worker))


def missing_signs(worker: Worker) -> str:
    """The first sign of being truly back that is still missing; "" when there is none."""
    if not worker.on:
        return "its VM is not on"
    if worker.node is None:
        return "its node has not registered"
    return _old_evidence(worker.node) or _not_usable(worker.node, gpu=bool(worker.vgpus))


def _old_evidence(node: Node) -> str:
    """A node that slept looks as it did before: only what changed since tells anything."""
    record = node.record
    if record is None or record.state != ASLEEP:
        return ""
    if record.lease == node.lease_renewed:
        return "its kubelet has not renewed the lease since it slept"
    return "its node status is from before the sleep" if record.heartbeat == node.heartbeat else ""


def _not_usable(node: Node, *, gpu: bool) -> str:
    if not node.ready:
        return "its node is not Ready"
    if bad := sorted(_BAD_TAINTS.intersection(node.taints)):
        return f"its node is tainted {bad[0]}"
    return "its node offers no nvidia.com/gpu yet" if gpu and node.gpus <= 0 else ""


@dataclass(frozen=True, slots=True)
class Label(Rung):
    """Say which profile the VM really carries; an empty value takes the label off."""

    key: str
    value: str | None

    def describe(self) -> str:
        return f"label {self.key}={self.value}" if self.value else f"remove label {self.key}"

    def done_in(self, fleet: Fleet) -> bool:
        node = fleet.worker(self.worker).node
        return node is None or node.labels.get(self.key) == self.value

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        return (PatchNode(node=_node(fleet, self.worker).name, labels={self.key: self.value}),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        node = fleet.worker(self.worker).node
        if node is None:
            return fleet
        others = {key: value for key, value in node.labels.items() if key != self.key}
        return fleet.with_node(self.worker, labels=others if self.value is None else others | {self.key: self.value})


@dataclass(frozen=True, slots=True)
class Uncordon(Rung):
    """Take our record off, and our cordon with it; the label is made true in the same patch. Another's cordon stays."""

    key: str
    value: str | None
    verb: ClassVar[str] = "uncordon"

    def done_in(self, fleet: Fleet) -> bool:
        node = fleet.worker(self.worker).node
        return node is None or node.record is None

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        node = _node(fleet, self.worker)
        ours = node.record is not None and node.record.cordoned
        labels = {self.key: self.value}
        patch = PatchNode.recording(
            node.name, None, labels=labels, unschedulable=False if ours else None, version=node.version
        )
        return (patch,)

    def applied_to(self, fleet: Fleet) -> Fleet:
        node = fleet.worker(self.worker).node
        if node is None:
            return fleet
        ours = node.record is not None and node.record.cordoned
        fleet = Label(self.worker, self.key, self.value).applied_to(fleet)
        return fleet.with_node(self.worker, record=None, unschedulable=node.unschedulable and not ours)
