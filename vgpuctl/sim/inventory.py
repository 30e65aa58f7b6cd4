"""What stands in the simulated world when it begins: plain data that both servers are built from."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

GIB_IN_MIB = 1024


@dataclass(frozen=True, slots=True)
class Durations:
    """How long things take, in seconds."""

    suspend_s: float = 2.0
    power_on_s: float = 2.0
    guest_boot_s: float = 2.0
    guest_shutdown_s: float = 1.0
    kubelet_s: float = 1.0
    pod_end_s: float = 1.5
    reconfigure_s: float = 0.1
    heartbeat_s: float = 10.0

    @classmethod
    def instant(cls) -> Durations:
        """Heartbeats are told in whole seconds, so two of them must be a second apart to be told apart."""
        return cls(0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, heartbeat_s=1.0)


@dataclass(frozen=True, slots=True)
class CardSpec:
    """One physical GPU. `vgpus` maps each vGPU type it offers to the most of that type it holds."""

    pci_id: str
    device_name: str
    frame_mib: int
    vgpus: dict[str, int]


@dataclass(frozen=True, slots=True)
class HostSpec:
    name: str
    cards: tuple[CardSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class VmSpec:
    """A VM; each has a Kubernetes node of the same name."""

    name: str
    host: str
    memory_mib: int = 16 * GIB_IN_MIB
    cpus: int = 8
    powered_on: bool = False

    @property
    def uuid(self) -> str:
        """The BIOS uuid: the same in every world, so that pictures and tests can be compared."""
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{self.name}.sim.vgpuctl"))


@dataclass(frozen=True, slots=True)
class Shift:
    """The workers of one profile, and the pods that want it."""

    profile: str
    vgpu: str
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inventory:
    cluster: str
    hosts: tuple[HostSpec, ...]
    vms: tuple[VmSpec, ...]
    day: Shift
    night: Shift


def v100(index: int) -> CardSpec:
    return CardSpec(
        pci_id=f"0000:{0x3B + index:02x}:00.0",
        device_name="NVIDIA Tesla V100-PCIE-16GB",
        frame_mib=16 * GIB_IN_MIB,
        vgpus={f"grid_v100-{gb}q": 16 // gb for gb in (1, 2, 4, 8, 16)},
    )


def story(hosts: int = 1, cards: int = 1) -> Inventory:
    """The mission's estate: for each card four day workers with a quarter and one night worker with all of it."""
    host_specs = tuple(HostSpec(f"esx-{n}", tuple(v100(i) for i in range(cards))) for n in range(1, hosts + 1))
    vms = [VmSpec("infra-1", "esx-1", powered_on=True)]
    day: list[str] = []
    night: list[str] = []
    for number in range(hosts * cards):
        names = [f"worker-{5 * number + n}" for n in range(1, 6)]
        vms += [VmSpec(name, f"esx-{number // cards + 1}") for name in names]
        day += names[:4]
        night += names[4:]
    return Inventory(
        cluster="gpu",
        hosts=host_specs,
        vms=tuple(vms),
        day=Shift("v100-4q-4GB", "grid_v100-4q", tuple(day)),
        night=Shift("v100-16q-16GB", "grid_v100-16q", tuple(night)),
    )
