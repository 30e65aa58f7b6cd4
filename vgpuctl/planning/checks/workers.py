"""What speaks against steps for one worker, whatever room there is.

A new kind of obstacle is one new class here: the planner's refusals and `profiles check` ask every class below
`Obstacle`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from vgpuctl.basics.moments import full_moment
from vgpuctl.model.fleet import Worker
from vgpuctl.model.hold import Hold
from vgpuctl.model.hosts import Host
from vgpuctl.model.plan import Step
from vgpuctl.model.refusal import Refusal
from vgpuctl.planning.cards.mmio import mmio_needed
from vgpuctl.planning.steps import Attach, Discard, Label, PowerOn, ShutDown, Suspend

#: The steps that change a VM's devices or power.
OF_THE_VM = (Suspend, ShutDown, Attach, Discard, PowerOn)


class Case(NamedTuple):
    """The worker that is asked about.

    `vgpus`: what it carries, or what it shall carry if its devices change. `include_held`: a person said that the wish
    concerns held workers, too.
    """

    worker: Worker
    host: Host | None
    vgpus: tuple[str, ...]
    include_held: bool = False


@dataclass(frozen=True, kw_only=True)
class Obstacle(Refusal):
    """Something about one worker that speaks against some of its steps.

    `kind`: its word in the document of `profiles check`. `against`: the kinds of steps it speaks against; () if it
    speaks against every step. `passing`: it ends by itself, so the files are not to blame. `out_of_step`: `status`
    counts it among what is not as it should be.
    """

    kind: ClassVar[str] = ""
    against: ClassVar[tuple[type[Step], ...]] = ()
    passing: ClassVar[bool] = False
    out_of_step: ClassVar[bool] = False

    worker: str

    @classmethod
    @abstractmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        """Yield this kind of obstacle, as often as it stands in this worker's way."""

    @property
    @abstractmethod
    def what(self) -> str:
        """Return what is the matter, as it is said of the worker: `is managed by …`."""

    @property
    def message(self) -> str:
        return f"{self.worker} {self.what}."

    def hinders(self, steps: Iterable[Step]) -> bool:
        """True if the obstacle speaks against one of these steps of its worker."""
        return any(not self.against or isinstance(step, self.against) for step in steps)


def obstacles(case: Case) -> Iterator[Obstacle]:
    for kind in KINDS:
        yield from kind.found(case)


@dataclass(frozen=True, kw_only=True)
class InDoubt(Obstacle):
    code = "VG101"
    kind = "in-doubt"
    title = "It is not certain which VM, node or profile belongs to a worker."
    way_out = "Correct it in profiles.yaml, the node's spec.providerID, or the VM's name; or delete what is stale."
    out_of_step = True

    doubt: str

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # Decision 0010: two entries, or two nodes, for one VM are a doubt about that worker and no error of all files.
        worker = case.worker
        for doubt in worker.doubts:
            yield cls(host=worker.host, worker=worker.name, doubt=doubt)

    @property
    def what(self) -> str:
        return f"cannot be identified for certain: {self.doubt}"


@dataclass(frozen=True, kw_only=True)
class Managed(Obstacle):
    code = "VG102"
    kind = "managed"
    title = "Another program manages the VM, and decides about its devices and power."
    way_out = "Change it there, or take it out of profiles.yaml."
    against = OF_THE_VM

    by: str

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # vSphere: `config.managedBy` names the owner of the VM's devices and power, such as VM Operator or a vApp.
        worker = case.worker
        if worker.managed_by:
            yield cls(host=worker.host, worker=worker.name, by=worker.managed_by)

    @property
    def what(self) -> str:
        return f"is managed by {self.by}, which decides about its devices and power"


@dataclass(frozen=True, kw_only=True)
class Question(Obstacle):
    code = "VG103"
    kind = "question"
    title = "The VM waits for an answer in vCenter, and does nothing until it has one."
    way_out = "Answer it in the vSphere client (or with govc vm.question). Then run the same command again."
    against = OF_THE_VM
    out_of_step = True

    question: str

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # vSphere: a power-on hangs for ever while `runtime.question` waits for an answer (moved or copied?).
        worker = case.worker
        if worker.question:
            yield cls(host=worker.host, worker=worker.name, question=worker.question)

    @property
    def what(self) -> str:
        return f"waits for an answer in vCenter: {self.question}"


@dataclass(frozen=True, kw_only=True)
class Busy(Obstacle):
    """A task of others. We wait for what we began ourselves, in an earlier run too."""

    code = "VG104"
    title = "vCenter runs a task on the VM that vgpuctl did not start."
    way_out = "Wait until that task has ended. Then run the same command again."
    against = OF_THE_VM
    passing = True

    task: str

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # vSphere: a backup may be at work on the VM, and a second task would end with TaskInProgress.
        worker = case.worker
        begun = worker.node is not None and worker.node.record is not None
        if worker.busy_with is not None and not begun:
            yield cls(host=worker.host, worker=worker.name, task=worker.busy_with.kind)

    def hinders(self, steps: Iterable[Step]) -> bool:
        touching = [step for step in steps if isinstance(step, OF_THE_VM)]
        return bool(touching) and not any(self.task in step.tasks for step in touching)

    @property
    def what(self) -> str:
        return f"has a task in vCenter that is not ours ({self.task or 'of an unknown kind'})"


@dataclass(frozen=True, kw_only=True)
class NotSuspendable(Obstacle):
    code = "VG105"
    kind = "not-suspendable"
    title = "The VM has a device with which vSphere suspends no VM."
    way_out = "Take the device off the VM, or take the worker out of the timetable."
    against = (Suspend,)

    device: str

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # vSphere: DirectPath I/O and SR-IOV devices forbid a suspend. VMs for RDMA training have them.
        worker = case.worker
        for device in worker.fixed_devices:
            yield cls(host=worker.host, worker=worker.name, device=device)

    @property
    def what(self) -> str:
        return f"cannot be suspended: it has {self.device}"


@dataclass(frozen=True, kw_only=True)
class TypeNotSuspendable(Obstacle):
    code = "VG106"
    kind = "not-suspendable"
    title = "The host cannot suspend VMs with this vGPU type."
    way_out = "Give the worker another profile, update the host's vGPU manager, or take it out of the timetable."
    against = (Suspend,)

    vgpu: str

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # vSphere: `SharedGpuCapabilities.suspendSupported` says so, for each host and type.
        worker, host = case.worker, case.host
        for vgpu in sorted(host.not_suspendable.intersection(case.vgpus)) if host else ():
            yield cls(host=worker.host, worker=worker.name, vgpu=vgpu)

    @property
    def what(self) -> str:
        return f"cannot be suspended: {self.host} cannot suspend {self.vgpu}"


@dataclass(frozen=True, kw_only=True)
class TracingForbidsSuspend(Obstacle):
    code = "VG115"
    kind = "not-suspendable"
    title = (
        "A vGPU of the VM has unified memory, debuggers or profilers switched on, and such a VM cannot be suspended."
    )
    way_out = (
        "Remove the setting from the VM, let workers sleep shut down (asleep: off), or take it out of the timetable."
    )
    against = (Suspend,)

    setting: str

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # NVIDIA, C-series: migration, which includes suspend and resume, is off with any of them.
        # The host's `suspendSupported` does not show it.
        worker = case.worker
        for setting in worker.tracing if case.vgpus else ():
            yield cls(host=worker.host, worker=worker.name, setting=setting)

    @property
    def what(self) -> str:
        return f"cannot be suspended: its setting {self.setting} is on"


@dataclass(frozen=True, kw_only=True)
class HostAway(Obstacle):
    code = "VG107"
    title = "The worker's host is in maintenance mode, or is not connected to vCenter."
    way_out = "Bring the host back, or move its workers to another host."
    against = (PowerOn,)
    passing = True

    why: str

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # vSphere: on a host in maintenance mode, a suspended VM cannot be resumed.
        if case.host is not None and (why := why_unusable(case.host)):
            yield cls(host=case.host.name, worker=case.worker.name, why=why)

    @property
    def what(self) -> str:
        return f"cannot start: {self.host} is {self.why}"

    @property
    def hint(self) -> str:
        return f"Bring {self.host} back first."


@dataclass(frozen=True, kw_only=True)
class NeedsEfi(Obstacle):
    code = "VG108"
    kind = "no-efi"
    title = "The VM boots by BIOS, and the card of its vGPU needs EFI."
    way_out = "Build the VM anew with EFI firmware: changing the firmware of an installed guest breaks it."
    against = (Attach,)

    vgpus: tuple[str, ...]

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # NVIDIA AI Enterprise: cards with large BARs need EFI and `pciPassthru.use64bitMMIO`.
        worker = case.worker
        if worker.mmio is not None and not worker.mmio.efi and mmio_needed(case.vgpus):
            yield cls(host=worker.host, worker=worker.name, vgpus=case.vgpus)

    @property
    def what(self) -> str:
        return f"boots by BIOS, and the card of {' '.join(self.vgpus)} needs EFI"


@dataclass(frozen=True, kw_only=True)
class HostUnseen(Obstacle):
    code = "VG116"
    kind = "host-unseen"
    title = "vCenter does not show the worker's host to vgpuctl's user, so nothing is known of its cards."
    way_out = "Give the user Read-only on the cluster of the hosts: vgpuctl rights vcenter prints the command."
    against = OF_THE_VM

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        # vSphere: a user may see a VM by its folder alone. Without cards, nothing orders its start after others' ends.
        if not case.worker.host:
            yield cls(host="", worker=case.worker.name)

    @property
    def what(self) -> str:
        return "is on a host that vCenter does not show to this user, so nothing is known of its cards"


@dataclass(frozen=True, kw_only=True)
class Held(Obstacle):
    code = "VG117"
    title = "A person holds the worker, so vgpuctl does not move it."
    way_out = (
        "Wait until the hold ends, end it with vgpuctl unhold WORKER, or move the worker all the same: --include-held."
    )
    passing = True

    hold: Hold

    @classmethod
    def found(cls, case: Case) -> Iterator[Obstacle]:
        worker = case.worker
        if worker.hold is not None and not case.include_held:
            yield cls(host=worker.host, worker=worker.name, hold=worker.hold)

    def hinders(self, steps: Iterable[Step]) -> bool:
        # A label says what a VM carries. It moves nothing, and a wrong one would mislead the scheduler.
        return any(not isinstance(step, Label) for step in steps)

    @property
    def what(self) -> str:
        return f"is {self.hold.phrase(full_moment(self.hold.until) if self.hold.until else '')}"

    @property
    def details(self) -> tuple[str, ...]:
        return (f"the end of this hold cannot be read: {self.hold.unreadable}",) if self.hold.unreadable else ()


def why_unusable(host: Host) -> str:
    """Return why no VM can start on this host; "" if nothing is wrong with it."""
    return "in maintenance mode" if host.maintenance else "" if host.connected else "not connected to vCenter"


#: Every kind of obstacle, in the order in which they are reported.
KINDS: tuple[type[Obstacle], ...] = tuple(Obstacle.__subclasses__())
