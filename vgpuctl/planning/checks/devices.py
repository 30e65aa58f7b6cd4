"""Whether a worker's vGPUs are, or can become, the ones of its profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vgpuctl.model.fleet import Power, Worker
from vgpuctl.model.hosts import Host
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.steps import equipped

#: vSphere: one VM has at most 16 vGPUs since 8.0 U2, 8 in 8.0, and 4 in 6.7 U3.
MOST_VGPUS = 16

PROVISION = "Run: vgpuctl provision"

#: What is said of a worker whose VM carries its vGPUs, but has too little address space for them.
ADDRESS_SPACE = "has no {} GB of 64-bit address space for the BAR of its card (pciPassthru.64bitMMIOSizeGB)"


@dataclass(frozen=True, kw_only=True)
class SuspendedWithDevices(Refusal):
    code = "VG109"
    title = "The VM is suspended, and vSphere changes the vGPU of a VM only while it is powered off."
    way_out = (
        "Let it run in its shift, or power it off in vCenter (its suspended state is lost), then run the same again."
    )

    worker: str

    @property
    def message(self) -> str:
        return f"{self.worker} is suspended: its vGPU can be changed only while it is powered off."


@dataclass(frozen=True, kw_only=True)
class OtherDevices(Refusal):
    code = "VG110"
    title = "The VM does not carry the vGPUs of its profile."
    way_out = PROVISION

    worker: str
    carries: tuple[str, ...]
    wanted: tuple[str, ...]

    @property
    def message(self) -> str:
        has = " ".join(self.carries) or "no vGPU"
        return f"{self.worker} cannot wake: it carries {has}, its profile is {' '.join(self.wanted)}."


@dataclass(frozen=True, kw_only=True)
class MemoryNotReserved(Refusal):
    code = "VG111"
    title = "The VM does not reserve all its memory, and a VM with a vGPU starts only if it does."
    way_out = PROVISION

    #: What is the matter, as it is said of a worker.
    what = "does not reserve all its memory, as a vGPU needs"

    worker: str

    @property
    def message(self) -> str:
        return f"{self.worker} cannot wake: it {self.what}."


@dataclass(frozen=True, kw_only=True)
class TypeNotOffered(Refusal):
    code = "VG113"
    title = "The worker's host offers no vGPU type of this name."
    way_out = "Correct the type in profiles.yaml, or move the worker to a host that offers it."

    worker: str
    vgpu: str
    offers: tuple[str, ...]

    @property
    def message(self) -> str:
        return f"{self.host} offers no vGPU type {self.vgpu}, which {self.worker} should carry."

    @property
    def hint(self) -> str:
        return f"It offers: {' '.join(self.offers)}"


@dataclass(frozen=True, kw_only=True)
class TooManyVgpus(Refusal):
    code = "VG114"
    title = f"A profile has more than {MOST_VGPUS} vGPUs, and vSphere gives no VM that many."
    way_out = "vSphere 8.0 U2 gives a VM up to 16, 8.0 up to 8, 6.7 U3 up to 4."

    worker: str
    count: int

    @property
    def message(self) -> str:
        return f"{self.worker} should carry {self.count} vGPUs; a VM has at most {MOST_VGPUS}."


def against_devices(wish: Wish, worker: Worker) -> Iterator[Refusal]:
    """Refuse to wake a VM whose devices are wrong, and to change the devices of a suspended one."""
    mine = wish.workers[worker.name]
    if mine.vgpus is None or equipped(worker, mine.vgpus):
        return
    # vSphere: suspended is not powered off, which govc and Ansible do not check.
    if mine.change and worker.power is Power.SUSPENDED:
        yield SuspendedWithDevices(host=worker.host, worker=worker.name)
    if not mine.change and mine.awake:
        if sorted(worker.vgpus) != sorted(mine.vgpus):
            yield OtherDevices(host=worker.host, worker=worker.name, carries=worker.vgpus, wanted=mine.vgpus)
        elif not worker.memory_locked:
            # vSphere: a VM with a vGPU has all its memory reserved (`memoryReservationLockedToMax`).
            yield MemoryNotReserved(host=worker.host, worker=worker.name)
        # Too little address space refuses no start: NVIDIA asks for it from 32 GB of memory on, and `profiles check`
        # warns of it.


def against_types(wish: Wish, host: Host, workers: list[Worker]) -> Iterator[Refusal]:
    """Refuse types that the host does not offer, and more vGPUs than a VM can have."""
    for worker in workers:
        mine = wish.workers[worker.name]
        if not mine.change or not mine.vgpus or equipped(worker, mine.vgpus):
            continue
        # NVIDIA: type names differ by prefix and board, so the host's own list decides.
        if unknown := [vgpu for vgpu in mine.vgpus if host.offers and vgpu not in host.offers]:
            yield TypeNotOffered(host=host.name, worker=worker.name, vgpu=unknown[0], offers=host.offers)
        if len(mine.vgpus) > MOST_VGPUS:
            yield TooManyVgpus(host=host.name, worker=worker.name, count=len(mine.vgpus))
