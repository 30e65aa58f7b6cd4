"""What the simulated world begins with: plain data that both servers are built from."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, field
from functools import cache

from vgpuctl.sim.card_models import GIB_IN_MIB, MODELS, CardMode, CardModel, Offer

#: vSphere's words for what DRS does by itself. In manual mode it only recommends, and places no VM.
MANUAL, FULLY_AUTOMATED = "manual", "fullyAutomated"
DRS_DISABLED = "disabled"
#: Those of ESXi 9.0 and of NVIDIA's branch R580. Only whether they change matters.
ESXI_BUILD, VGPU_MANAGER = "24755229", "580.65.05"
#: What sets a guest's clock after a resume.
TOOLS, CHRONY, NEVER = "tools", "chrony", "never"
CLOCKS = (TOOLS, CHRONY, NEVER)
#: kubelet: a heartbeat carries whole seconds. With none between two of them, time would never pass.
LEAST_HEARTBEAT_S = 1.0


@dataclass(slots=True)
class Durations:
    """How long things take, in seconds. They may be changed while the world runs.

    `store_mib_per_s`: the datastore's throughput. If set, a suspend or resume takes its VM's memory divided by it, and
    those that run at once share it evenly. `tasks_per_host`: further tasks of a host stay queued (the number is
    inferred). `graphics_lag_s`: how late a host's books of its cards are. `report_s`: how long a kubelet may leave out
    a status in which nothing changed. `node_grace_s`: how long a silent node counts as healthy. `unhealthy_s`: when a
    health check replaces the Machine of such a node. `training_s`: how long a Job of one GPU trains. `gpu_stack_s`: how
    long driver and toolkit take after a kubelet has started or was resumed; only then a device plugin starts, and
    offers GPUs. `tools_clock_s`, `chrony_clock_s`: how long after a resume this program sets the guest's clock.
    """

    # Short enough to watch. Real suspends of large VMs take minutes.
    suspend_s: float = 2.0
    power_on_s: float = 2.0
    guest_boot_s: float = 2.0
    guest_shutdown_s: float = 1.0
    kubelet_s: float = 1.0
    pod_end_s: float = 1.5
    reconfigure_s: float = 0.1
    # kubelet: it renews its Lease and compares its status every 10 s.
    heartbeat_s: float = 10.0
    # kubelet: `nodeStatusReportFrequency` is five minutes by default (decision 0003).
    report_s: float = 300.0
    # kube-controller-manager: `--node-monitor-grace-period` is 50 s by default.
    node_grace_s: float = 50.0
    # Cluster API: the five minutes of the MachineHealthCheck in its documentation.
    unhealthy_s: float = 300.0
    training_s: float = 3600.0
    # Short enough to watch. Real ones take 20 s, and minutes where a container compiles the driver.
    gpu_stack_s: float = 2.0
    migrate_s: float = 2.0
    # vSphere HA: a master declares a silent host dead after some 15 to 18 s.
    failover_s: float = 18.0
    graphics_lag_s: float = 0.0
    # Inferred: VMware Tools hear of the resume at once. The kubelet may renew its Lease before they have acted.
    tools_clock_s: float = 1.5
    # chrony: it measures every 64 to 1,024 s (minpoll 6, maxpoll 10).
    chrony_clock_s: float = 64.0
    store_mib_per_s: float | None = None
    tasks_per_host: int = 8

    def __post_init__(self) -> None:
        if not self.heartbeat_s >= LEAST_HEARTBEAT_S:
            raise ValueError(f"heartbeat_s must be at least {LEAST_HEARTBEAT_S:.0f}, not {self.heartbeat_s}")

    @classmethod
    def instant(cls) -> Durations:
        """Nearly no time. Heartbeats carry whole seconds, so they stay a second apart to be distinguishable.
        Each of them posts the status, too: else a sleep that Kubernetes did not notice would last for half a minute.
        """
        # Decision 0005: two heartbeats within a second would look the same.
        quick = cls(0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, heartbeat_s=1.0, report_s=0.0)
        quick.gpu_stack_s, quick.tools_clock_s, quick.migrate_s = 0.01, 0.02, 0.01
        return quick


@dataclass(frozen=True, slots=True)
class CardSpec:
    """One physical GPU. `aliases`: further names of vGPU types, each with the type that it stands for. `shared`: set to
    ESXi's own graphics instead of sharedDirect, so it holds no vGPU.
    """

    pci_id: str
    model: CardModel
    mode: CardMode = CardMode.SAME_SIZE
    aliases: tuple[tuple[str, str], ...] = ()
    shared: bool = False

    def __post_init__(self) -> None:
        if self.mode not in self.model.offers:
            raise ValueError(f"{self.model.name} has no mode {self.mode.value}; it has {', '.join(self.model.offers)}")

    @property
    def device_name(self) -> str:
        return self.model.device_name

    @property
    def frame_mib(self) -> int:
        return self.model.frame_mib

    @property
    def vgpus(self) -> dict[str, int]:
        """Each vGPU type that the card offers in its mode, with how many of that type it holds at most."""
        return {vgpu: offer.most for vgpu, offer in self.offers.items()}

    @property
    def offers(self) -> dict[str, Offer]:
        # vSphere: only a card of type `sharedDirect` holds vGPUs.
        if self.shared:
            return {}
        offered = self.model.offers[self.mode]
        return offered | {name: offered[vgpu] for name, vgpu in self.aliases} if self.aliases else offered

    def canonical_type(self, vgpu: str) -> str:
        """Return the type that an alias stands for; any other type unchanged."""
        # vSphere: a type's stem encodes board and memory, so hosts may know types that no table has.
        return dict(self.aliases).get(vgpu, vgpu)


@dataclass(frozen=True, slots=True)
class HostSpec:
    """`policy`: how vCenter chooses among the host's cards, `performance` or `consolidation`.

    `unsuspendable`: vGPU types that the host cannot suspend (`SharedGpuCapabilities.suspendSupported`). `build`: that
    of ESXi. `vgpu_manager`: the version of NVIDIA's vGPU Manager. `crashed`: the world begins with its crash.
    `cluster`: "" for the inventory's. `datastore`: the datastore of its VMs that name none.
    """

    name: str
    cards: tuple[CardSpec, ...] = ()
    policy: str = "performance"
    memory_mib: int = 4096 * GIB_IN_MIB
    in_maintenance: bool = False
    crashed: bool = False
    unsuspendable: tuple[str, ...] = ()
    build: str = ESXI_BUILD
    vgpu_manager: str = VGPU_MANAGER
    datacenter: str = "dc"
    cluster: str = ""
    datastore: str = "store"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ha:
    """HA with admission control. One of its policies is set: a share of the memory that stays unreserved; slots for the
    failure of `level` hosts, of a fixed size or as large as the largest reservation; or whole hosts that stay empty.
    """

    memory_percent: int = 0
    level: int = 0
    slot_mib: int = 0
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Licences:
    """A pool of vGPU licences. A VM that stops without a shutdown keeps its seat for `lease_s`."""

    seats: int
    # NVIDIA: a lease lasts one day by default.
    lease_s: float = 86400.0


@dataclass(frozen=True, slots=True)
class VmSpec:
    """A VM. Most have a Kubernetes node of this name.

    `bios`: it does not boot with EFI. `sriov`: it has an SR-IOV device, which forbids suspending. `tools`: its guest
    runs VMware Tools. `question`: what it asks at each power-on before it goes on. `managed_by`: the extension that
    owns it, as `config.managedBy`. `clock`: what sets its clock after a resume.

    `suspended`: it is suspended at the beginning; `suspended_under`: the ESXi build that its host had then, if another.

    `drs`: an override for this VM, `disabled` or a behaviour. `must_run_on`: a mandatory rule binds it to this host.
    `gpu_stack_s`: how long its GPU stack takes, if not as long as others'; infinite if it never comes up.

    `vm_name`: its name in vCenter, if it is another than its node's. `folder`: its path below the datacenter's `vm`
    folder. `datastore`: where its files are, "" for its host's. `suspend_datastore`: where its suspend file is written,
    "" for beside the others. `extra_config`: settings beside those that its vGPUs need.
    """

    name: str
    host: str
    memory_mib: int = 16 * GIB_IN_MIB
    cpus: int = 8
    powered_on: bool = False
    suspended: bool = False
    suspended_under: str = ""
    vgpus: tuple[str, ...] = ()
    memory_locked: bool = False
    bios: bool = False
    sriov: bool = False
    tools: bool = True
    clock: str = TOOLS
    question: str = ""
    managed_by: str = ""
    drs: str = ""
    must_run_on: str = ""
    has_node: bool = True
    gpu_stack_s: float | None = None
    vm_name: str = ""
    folder: str = ""
    datastore: str = ""
    suspend_datastore: str = ""
    extra_config: tuple[tuple[str, str], ...] = ()

    @property
    def has_device_plugin(self) -> bool:
        """True if its device plugin comes up at some time."""
        return self.gpu_stack_s is None or math.isfinite(self.gpu_stack_s)

    @property
    def uuid(self) -> str:
        """The BIOS uuid."""
        return uuid_of(self.name)


@cache
def uuid_of(name: str) -> str:
    """Return the uuid of a VM or host: the same in every world, so that tests can compare worlds."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.sim.vgpuctl"))


@dataclass(frozen=True, slots=True)
class Group:
    """The workers of one profile, and the vGPUs that each of them should have."""

    profile: str
    vgpus: tuple[str, ...]
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shift:
    """`starts`: a standard cron line. `profiles`: the profiles whose workers are awake in this shift."""

    name: str
    starts: str
    profiles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Pods that run in the cluster. With a profile they select its nodes and request a GPU.

    `budget`: a PodDisruptionBudget for them, such as {"minAvailable": 4}. `after_day`: created only when all workers of
    the first shift are ready.
    """

    name: str
    replicas: int
    kind: str = "Deployment"
    profile: str | None = None
    budget: dict[str, int] | None = field(default=None, hash=False)
    after_day: bool = False


@dataclass(frozen=True, slots=True)
class Inventory:
    """`groups` and `shifts`: profiles and timetable that fit the inventory; the servers do not use them.

    `datastore_free_mib`: room for suspend files on each datastore. `datastores`: the room of single ones, by their
    names or as DATACENTER/NAME.

    `drs`: a power-on or resume without room on its own host goes to the first host of the cluster that has room, unless
    `drs_behaviour` is manual. `hot_migration`: running VMs with vGPUs can be moved. `cluster_api`: each VM with a node
    also has a Machine, under a health check. `cloud_provider`: vSphere's cloud provider looks after the nodes. `ha`: HA
    also restarts what ran on a host that crashed.
    """

    cluster: str
    hosts: tuple[HostSpec, ...]
    vms: tuple[VmSpec, ...]
    groups: tuple[Group, ...] = ()
    shifts: tuple[Shift, ...] = ()
    workloads: tuple[Workload, ...] = ()
    datastore_free_mib: int = 90 * 1024 * GIB_IN_MIB
    datastores: tuple[tuple[str, int], ...] = ()
    drs: bool = False
    drs_behaviour: str = FULLY_AUTOMATED
    hot_migration: bool = False
    cluster_api: bool = False
    cloud_provider: bool = False
    ha: Ha | None = None
    licences: Licences | None = None

    def workers_of(self, profile: str) -> tuple[str, ...]:
        return next((group.workers for group in self.groups if group.profile == profile), ())

    @property
    def first_awake(self) -> tuple[str, ...]:
        """The workers of the first shift."""
        first = self.shifts[0].profiles if self.shifts else ()
        return tuple(worker for profile in first for worker in self.workers_of(profile))


def v100(index: int) -> CardSpec:
    # NVIDIA: Volta's last driver branch is R580. The scenarios have newer cards, too.
    return CardSpec(pci_id=pci_id(index), model=MODELS["V100-16"])


def pci_id(index: int) -> str:
    return f"0000:{0x3B + index:02x}:00.0"


def default_shifts(day: Group, *night: Group) -> tuple[Shift, ...]:
    return (
        Shift("day", "0 8 * * *", (day.profile,)),
        Shift("night", "0 20 * * *", tuple(group.profile for group in night)),
    )


def default_workloads(day: Group, night: Group) -> tuple[Workload, ...]:
    """Return one pod for each worker, and a gateway of three pods with a budget that keeps two."""
    return (
        Workload(name="notebooks", replicas=len(day.workers), profile=day.profile),
        Workload(name="training", replicas=len(night.workers), kind="Job", profile=night.profile),
        Workload(name="gateway", replicas=3, budget={"maxUnavailable": 1}, after_day=True),
    )


def default_inventory(hosts: int = 1, cards: int = 1) -> Inventory:
    """Return the default estate: for each card four day workers with a quarter of it and one night worker with all of
    it.
    """
    host_specs = tuple(HostSpec(f"esx-{n}", tuple(v100(i) for i in range(cards))) for n in range(1, hosts + 1))
    vms = [VmSpec("infra-1", "esx-1", powered_on=True)]
    day_workers: list[str] = []
    night_workers: list[str] = []
    for number in range(hosts * cards):
        names = [f"worker-{5 * number + n}" for n in range(1, 6)]
        vms += [VmSpec(name, f"esx-{number // cards + 1}") for name in names]
        day_workers += names[:4]
        night_workers += names[4:]
    day = Group("v100-4q-4GB", ("grid_v100-4q",), tuple(day_workers))
    night = Group("v100-16q-16GB", ("grid_v100-16q",), tuple(night_workers))
    workloads = default_workloads(day, night)
    return Inventory("gpu", host_specs, tuple(vms), (day, night), default_shifts(day, night), workloads)
