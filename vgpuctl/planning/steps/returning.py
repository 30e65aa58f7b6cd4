"""Up the ladder: power on → truly back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from vgpuctl.basics.change import changed
from vgpuctl.model.fleet import Fleet, Node, Power, Worker
from vgpuctl.model.pods import Pod
from vgpuctl.model.record import ASLEEP
from vgpuctl.model.requests import Confirm, PowerOffVm, PowerOnVm, Request
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.model.wait import UNDER_WAY, Reason, Wait
from vgpuctl.planning.pods.drain import lost_with_state
from vgpuctl.planning.signs import cards_key
from vgpuctl.planning.steps.step import CHANGE_S, Look, WorkerStep, state_s

# Kubernetes: the first two are on a silent node. The vSphere cloud provider taints the node of a suspended VM
# `shutdown` until that node is Ready again.
_BAD_TAINTS = frozenset(
    {
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/not-ready",
        "node.cloudprovider.kubernetes.io/shutdown",
        "node.cloudprovider.kubernetes.io/uninitialized",
    }
)

#: Assumed: how long a guest takes to boot, and a node to be truly back.
BOOT_S = 60.0
STACK_S = 60.0
#: In this time a kubelet has compared its status with what it posted, and has posted every difference. It compares
#: every 10 s, and renews its Lease as often. Measured on kubemark 1.36: without a difference, it posted no heartbeat in
#: 60 s (decision 0003).
LOOKED_S = 30.0


@dataclass(frozen=True, slots=True)
class Discard(WorkerStep):
    """Discard a suspended state that cannot or must not be resumed: what ran in it is lost.

    `drain`: the options with which the worker was drained. `given_up`: the UIDs of other pods that may be lost.
    """

    drain: DrainOptions = field(default_factory=DrainOptions)
    given_up: frozenset[str] = frozenset()
    verb: ClassVar[str] = "discard the suspended state"
    doing: ClassVar[str] = "discarding its suspended state"
    finished: ClassVar[str] = "discarded"
    bar: ClassVar[str] = "discard"
    look: ClassVar[Look] = Look.SHUT_DOWN
    lasts: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("powerOff",)

    def assumed_s(self, fleet: Fleet) -> float:
        return CHANGE_S

    def is_done(self, worker: Worker) -> bool:
        return worker.power is not Power.SUSPENDED

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        # vSphere: a suspended state may not resume after a host upgrade or on another host.
        # After a drain it holds nothing worth keeping, unless a pod asked to be frozen.
        worker = fleet.worker(self.worker)
        return (PowerOffVm(worker=worker.name, vm=worker.vm, first=self._confirm(worker.node)),)

    def _confirm(self, node: Node | None) -> Confirm | None:
        """Return a last check of the node's pods: none may be lost that was not known when this was decided."""
        if node is None:
            return None
        lost = {pod.uid for pod in lost_with_state(node, self.drain)} - self.given_up
        return Confirm(node=node.name, expected=frozenset(pod.uid for pod in node.pods if pod.uid not in lost))

    def applied(self, worker: Worker) -> Worker:
        return changed(worker, power=Power.OFF)


@dataclass(frozen=True, slots=True)
class PowerOn(WorkerStep):
    """Resume or start the VM; vCenter chooses the card."""

    resume: bool = True
    doing: ClassVar[str] = "starting"
    finished: ClassVar[str] = "started"
    look: ClassVar[Look] = Look.POWER_ON
    lasts: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("powerOn",)
    #: vSphere: a resume reads the whole memory back, and a task may hang at 95 %.
    deadline_s: ClassVar[float] = 900.0

    def describe(self) -> str:
        return "resume" if self.resume else "power on"

    def assumed_s(self, fleet: Fleet) -> float:
        return CHANGE_S + (state_s(fleet, self.worker) if self.resume else BOOT_S)

    def hangs_on(self, fleet: Fleet) -> Iterable[str]:
        # vSphere: a start is refused for want of a card with room, too.
        return (*WorkerStep.hangs_on(self, fleet), cards_key(fleet.host_of(self.worker)))

    def is_done(self, worker: Worker) -> bool:
        return worker.on

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        # vSphere: PowerOnVM_Task also resumes. Under DRS it may place the VM on another host.
        worker = fleet.worker(self.worker)
        return (PowerOnVm(worker=worker.name, vm=worker.vm),)

    def applied(self, worker: Worker) -> Worker:
        return changed(worker, power=Power.ON)


@dataclass(frozen=True, slots=True)
class WaitBack(WorkerStep):
    """Wait until the node itself shows that it is truly back; no request is sent."""

    verb: ClassVar[str] = "ready"
    doing: ClassVar[str] = "coming back"
    finished: ClassVar[str] = "ready"
    bar: ClassVar[str] = "ready"
    look: ClassVar[Look] = Look.BACK
    lasts: ClassVar[bool] = True
    #: The GPU stack may take 3 to 5 minutes after a resume.
    deadline_s: ClassVar[float] = 900.0

    def deed(self) -> str:
        return "come back"

    def assumed_s(self, fleet: Fleet) -> float:
        return STACK_S

    def is_done(self, worker: Worker) -> bool:
        return not missing_signs(worker)

    def applied(self, worker: Worker) -> Worker:
        node = worker.node or Node(name=self.worker)
        back = changed(
            node,
            ready=True,
            taints=tuple(taint for taint in node.taints if taint not in _BAD_TAINTS),
            gpus=max(node.gpus, len(worker.vgpus)),
            lease_renewed=f"{node.lease_renewed}+",
            heartbeat=f"{node.heartbeat}+",
            alive_s=LOOKED_S,
            pods=tuple(replace(pod, ready=True) if _is_device_plugin(pod) else pod for pod in node.pods),
        )
        return changed(worker, node=back)

    def waits_for(self, fleet: Fleet) -> Wait:
        missing = missing_signs(fleet.worker(self.worker))
        return Wait.of(Reason.NOT_BACK, missing) if missing else UNDER_WAY


def missing_signs(worker: Worker) -> str:
    """Return the first sign of being truly back that is still missing; "" if none is."""
    if not worker.on:
        return "its VM is not on"
    if worker.node is None:
        # Kubernetes: a node that was deleted while its VM slept registers anew.
        return "its node has not registered"
    return _old_evidence(worker.node) or _not_usable(worker.node, gpu=bool(worker.vgpus))


def _old_evidence(node: Node) -> str:
    """Return why the node's status may be from before its sleep; "" if it is newer.

    A node that slept looks as it did before, so only what changed since counts as evidence. An unchanged status counts
    once the kubelet has checked it several times: kubelets report an unchanged status only every few minutes.
    """
    # Measured: a frozen node stayed Ready for 40 to 50 s, and showed `nvidia.com/gpu: 1` even when NotReady.
    record = node.record
    if record is None or record.state != ASLEEP:
        return ""
    # Measured: a resumed kubelet renewed its Lease within 1 s, while its node was NotReady for more than 6 s.
    # Neither sign alone says that the node is back.
    if record.lease == node.lease_renewed:
        return "its kubelet has not renewed the lease since it slept"
    if record.heartbeat == node.heartbeat and node.alive_s < LOOKED_S:
        return "its node status is from before the sleep"
    return ""


def _not_usable(node: Node, *, gpu: bool) -> str:
    if not node.ready:
        return "its node is not Ready"
    if bad := sorted(_BAD_TAINTS.intersection(node.taints)):
        return f"its node is tainted {bad[0]}"
    # The GPU stack may take 3 to 5 minutes after a resume, so Ready alone is too early.
    if gpu and node.gpus <= 0:
        return "its node offers no nvidia.com/gpu yet"
    silent = (pod for pod in node.pods if gpu and _is_device_plugin(pod) and not pod.ready)
    return next((f"its device plugin {pod} is not Ready" for pod in silent), "")


def _is_device_plugin(pod: Pod) -> bool:
    """True if this is NVIDIA's device plugin, by the DaemonSet names in NVIDIA's manifest, chart and operator.

    A node may still report GPUs that were counted before it slept; only the plugin knows them now.
    """
    kind, _, name = (pod.owner or "").partition("/")
    return kind == "DaemonSet" and "nvidia-device-plugin" in name and not pod.finished
