"""The state of each host, VM and task. Only the estate changes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import NamedTuple, TypeAlias

from vgpuctl.sim.inventory import HostSpec, VmSpec
from vgpuctl.sim.vcenter.physics.cards import Card
from vgpuctl.sim.vcenter.physics.overhead import overhead_mib
from vgpuctl.sim.vcenter.physics.places import Cluster, Folder, Store
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.vcenter.physics.task_progress import ALMOST_DONE

#: A device's key is vCenter's choice, so clients must read it. vcsim 0.56 gave a first vGPU 205 (measured with govc).
FIRST_VGPU_KEY = 13000


class Power(StrEnum):
    ON = "poweredOn"
    OFF = "poweredOff"
    SUSPENDED = "suspended"


class Connection(StrEnum):
    """vSphere API: HostSystemConnectionState."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    NOT_RESPONDING = "notResponding"


class Software(NamedTuple):
    """What a host runs: the build of ESXi, and the version of NVIDIA's vGPU Manager."""

    build: str
    vgpu_manager: str


class TaskState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"


class OperationKind(NamedTuple):
    """Everything that tasks say about one operation.

    `method`: the method that starts it. `of_hosts`: its task shows a host. `cancelable`: a client may cancel it while
    it runs.
    """

    method: str
    description_id: str
    of_hosts: bool = False
    cancelable: bool = False


class Operation(Enum):
    """The operations that tasks carry out. A new one is a row here, and a method that starts it."""

    # vcsim 0.56 has the same description ids (measured). Not every running task can be cancelled; which ones can is
    # inferred.
    POWER_ON = OperationKind("PowerOnVM_Task", "VirtualMachine.powerOn", cancelable=True)
    POWER_OFF = OperationKind("PowerOffVM_Task", "VirtualMachine.powerOff")
    SUSPEND = OperationKind("SuspendVM_Task", "VirtualMachine.suspend")
    RECONFIGURE = OperationKind("ReconfigVM_Task", "VirtualMachine.reconfigure")
    MIGRATE = OperationKind("MigrateVM_Task", "VirtualMachine.migrate")
    DESTROY = OperationKind("Destroy_Task", "VirtualMachine.destroy")
    ENTER_MAINTENANCE = OperationKind(
        "EnterMaintenanceMode_Task", "HostSystem.enterMaintenanceMode", of_hosts=True, cancelable=True
    )
    EXIT_MAINTENANCE = OperationKind("ExitMaintenanceMode_Task", "HostSystem.exitMaintenanceMode", of_hosts=True)


#: vSphere: a VM asks this when its files lie elsewhere than before.
CHOICES = ("Cancel", "I Moved It", "I Copied It")
"""The choices of a VM's question, by number. The first cancels the power-on."""


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str


@dataclass(eq=False, slots=True)
class Host:
    moid: str
    spec: HostSpec
    cluster: Cluster
    cards: list[Card]
    policy: str = "performance"
    in_maintenance: bool = False
    connection: Connection = Connection.CONNECTED
    vms: list[Vm] = field(default_factory=list)
    running_task: Task | None = None
    recent_tasks: list[Task] = field(default_factory=list)
    software: Software = field(init=False)

    def __post_init__(self) -> None:
        self.software = Software(self.spec.build, self.spec.vgpu_manager)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def connected(self) -> bool:
        return self.connection is Connection.CONNECTED

    @property
    def unreserved_mib(self) -> int:
        return self.spec.memory_mib - sum(vm.reserved_mib for vm in self.vms)

    @property
    def runs_vms(self) -> bool:
        return any(vm.power is Power.ON for vm in self.vms)

    def offers(self, vgpu: str) -> bool:
        return any(vgpu in card.spec.offers for card in self.cards)


@dataclass(eq=False, slots=True)
class Vm:
    """One VM. `store`: the datastore with its files; `suspend_store`: the datastore of its suspend file.

    `reserved_mib`: memory that its host reserves for it now; `suspend_file_mib`: the size of its suspend
    file.

    `suspended_under`: what its host ran when it was suspended.

    `power` is the truth. `last_known`: what vCenter shows instead while the VM's host is lost.

    `power_on_question`: what it asks at each power-on; `question`: what it waits for now. `shutting_down`: its guest
    was asked to shut down.
    """

    moid: str
    spec: VmSpec
    host: Host
    folder: Folder
    store: Store
    suspend_store: Store
    power: Power
    memory_mib: int
    cpus: int
    changed: datetime
    memory_locked: bool = False
    annotation: str = ""
    extra_config: dict[str, str] = field(default_factory=dict)
    vgpus: dict[int, str] = field(default_factory=dict)
    tools: bool = True
    shutting_down: bool = False
    power_on_question: str = ""
    question: Question | None = None
    reserved_mib: int = 0
    suspend_file_mib: int = 0
    suspended_under: Software | None = None
    last_known: Power | None = None
    revision: int = 1
    booted: datetime | None = None
    running_task: Task | None = None
    recent_tasks: list[Task] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name in vCenter, which is unique in its folder only."""
        return self.spec.vm_name or self.spec.name

    @property
    def guest(self) -> str:
        """The name of the machine inside, and of its node. It is unique."""
        return self.spec.name

    @property
    def shown_power(self) -> Power:
        return self.last_known or self.power

    @property
    def stores(self) -> tuple[Store, ...]:
        return tuple(dict.fromkeys((self.store, self.suspend_store)))

    @property
    def reservation_mib(self) -> int:
        """The memory that it reserves while it runs: all of it or none."""
        # vSphere API: with `memoryReservationLockedToMax` the reservation always equals the memory.
        return self.memory_mib if self.memory_locked else 0

    @property
    def overhead_mib(self) -> int:
        return overhead_mib(self.memory_mib, self.cpus)

    @property
    def needed_mib(self) -> int:
        """What a host must have unreserved to start it."""
        # vSphere: a host reserves each running VM's memory overhead, also for a VM without a reservation of its own.
        return self.reservation_mib + self.overhead_mib

    @property
    def cards(self) -> list[Card]:
        """The cards that hold its vGPUs; none while it is off or suspended."""
        return [card for card in self.host.cards if card.holds(self.moid)]

    def next_device_key(self) -> int:
        return next(key for key in range(FIRST_VGPU_KEY, FIRST_VGPU_KEY + len(self.vgpus) + 1) if key not in self.vgpus)


@dataclass(eq=False, slots=True)
class Task:
    moid: str
    operation: Operation
    entity_moid: str
    entity_name: str
    queued: datetime
    user: str = ""
    state: TaskState = TaskState.QUEUED
    progress: int | None = None
    started: datetime | None = None
    completed: datetime | None = None
    error: Refusal | None = None
    cancelled: bool = False

    @property
    def done(self) -> bool:
        return self.completed is not None

    @property
    def cancelable(self) -> bool:
        """True before it begins, then only for operations that lose nothing if they stop half-way (which ones is
        inferred).
        """
        if self.state is TaskState.RUNNING:
            return self.operation.value.cancelable and (self.progress or 0) < ALMOST_DONE
        return self.state is TaskState.QUEUED


Record: TypeAlias = Host | Vm | Task | Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """One reconfiguration. A device is (index in the request, key, vGPU type); a fault names the index."""

    added: tuple[tuple[int, str], ...] = ()
    replaced: tuple[tuple[int, int, str], ...] = ()
    removed: tuple[tuple[int, int], ...] = ()
    memory_locked: bool | None = None
    memory_mib: int | None = None
    cpus: int | None = None
    annotation: str | None = None
    extra_config: tuple[tuple[str, str], ...] = ()
    expected_revision: int | None = None

    @property
    def needs_off(self) -> bool:
        # vSphere: a vGPU is attached, replaced or removed only while the VM is off.
        # Hot-add of memory and CPUs is not simulated.
        resized = self.memory_mib is not None or self.cpus is not None
        return resized or bool(self.added or self.replaced or self.removed)

    def wanted_vgpus(self) -> Iterable[tuple[int, str]]:
        yield from self.added
        yield from ((index, vgpu) for index, _, vgpu in self.replaced)

    def touched_keys(self) -> Iterable[tuple[int, int]]:
        yield from self.removed
        yield from ((index, key) for index, key, _ in self.replaced)
