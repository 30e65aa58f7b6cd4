"""The devices of a powered-off VM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vgpuctl.basics.change import changed
from vgpuctl.model.fleet import Fleet, Mmio, Worker
from vgpuctl.model.requests import AttachVgpus, Request
from vgpuctl.planning.cards.mmio import mmio_needed
from vgpuctl.planning.steps.step import CHANGE_S, Look, WorkerStep

#: NVIDIA AI Enterprise: the least memory of the VMs that its table of address space is for.
TABLE_FROM_MIB = 32 * 1024


@dataclass(frozen=True, slots=True)
class Attach(WorkerStep):
    """Replace the vGPUs of a powered-off VM by these, and set what they need of the VM."""

    vgpus: tuple[str, ...]
    verb: ClassVar[str] = "attach"
    doing: ClassVar[str] = "changing its vGPUs"
    finished: ClassVar[str] = "changed"
    bar: ClassVar[str] = "attach"
    look: ClassVar[Look] = Look.ATTACH
    lasts: ClassVar[bool] = True
    tasks: ClassVar[tuple[str, ...]] = ("reconfigure",)

    def describe(self) -> str:
        return f"attach {' '.join(self.vgpus)}" if self.vgpus else "remove vGPUs"

    def assumed_s(self, fleet: Fleet) -> float:
        return CHANGE_S

    def is_done(self, worker: Worker) -> bool:
        return equipped(worker, self.vgpus)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        wider = 0 if addressable(worker.mmio, self.vgpus) else mmio_needed(self.vgpus)
        # vSphere: to replace a vGPU, one ReconfigVM_Task removes and adds devices while the VM is powered off.
        return (AttachVgpus(worker=worker.name, vm=worker.vm, vgpus=self.vgpus, mmio_gib=wider),)

    def applied(self, worker: Worker) -> Worker:
        known = worker.mmio
        if known is not None and not addressable(known, self.vgpus):
            known = Mmio(efi=known.efi, use_64bit=True, size_gib=mmio_needed(self.vgpus))
        return changed(worker, vgpus=self.vgpus, memory_locked=True, mmio=known)


def equipped(worker: Worker, vgpus: tuple[str, ...]) -> bool:
    """True if the VM carries exactly these vGPUs, with all that they need of it."""
    if sorted(worker.vgpus) != sorted(vgpus):
        return False
    # vSphere: a VM with a vGPU has all its memory reserved (`memoryReservationLockedToMax`).
    return not vgpus or (worker.memory_locked and has_address_space(worker, vgpus))


def has_address_space(worker: Worker, vgpus: tuple[str, ...]) -> bool:
    """True if the VM needs no wider address settings for these vGPUs. Memory that was not read counts as large."""
    # NVIDIA AI Enterprise: the table of address space is for VMs of 32 GB and more. A smaller VM runs without.
    small = 0 < worker.memory_mib < TABLE_FROM_MIB
    return small or addressable(worker.mmio, vgpus)


def addressable(mmio: Mmio | None, vgpus: tuple[str, ...]) -> bool:
    """True if the VM's address settings are wide enough. Settings that were not read count as wide enough."""
    # NVIDIA AI Enterprise: `pciPassthru.use64bitMMIO` and `pciPassthru.64bitMMIOSizeGB`, for cards with large BARs.
    needed = mmio_needed(vgpus)
    return mmio is None or not needed or (mmio.use_64bit and mmio.size_gib >= needed)
