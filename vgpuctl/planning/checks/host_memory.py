"""Whether a host's memory holds the workers that shall start. A VM with vGPUs has all its memory reserved.

What ESXi keeps for itself is not known, so only what is certainly too much is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import Host
from vgpuctl.model.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Shortage:
    """A lack of memory, in MiB: what the starting workers need together, what is free, and what other VMs keep."""

    needed: int
    free: int
    of_host: int
    of_workers: int
    of_strangers: int


@dataclass(frozen=True, kw_only=True)
class MemoryFull(Refusal):
    code = "VG303"
    title = "The host's memory will not hold the workers that the wish starts."
    way_out = (
        "Take a worker off the shift, move one to another host, or give it less memory: all memory of a VM with a vGPU "
        "is reserved."
    )

    wish: str
    workers: tuple[str, ...]
    short: Shortage

    @property
    def message(self) -> str:
        return (
            f"{self.wish} cannot begin on {self.host}: its memory will not hold {' '.join(self.workers)}. They need "
            f"{in_gb(self.short.needed)}; of {in_gb(self.short.of_host)}, {in_gb(self.short.free)} will be free."
        )

    @property
    def details(self) -> tuple[str, ...]:
        workers, others = in_gb(self.short.of_workers), in_gb(self.short.of_strangers)
        return (f"workers that stay keep {workers}, other VMs have reserved {others}",)


def shortage(fleet: Fleet, host: Host, leaving: Collection[str], starting: Iterable[Worker]) -> Shortage | None:
    """Return the shortage; None if all fit once `leaving` are gone, or if the host's memory is not known."""
    # vSphere: a resume needs all reserved memory of the VM free on the host (InsufficientMemoryResourcesFault).
    # The night worker's memory fits only once the day workers have given theirs back.
    staying = (w for w in fleet.on_host(host.name) if w.on and w.memory_locked and w.name not in leaving)
    workers = sum(worker.memory_mib for worker in staying)
    strangers = sum(stranger.reserved_mib for stranger in fleet.strangers_on(host.name) if stranger.on)
    needed = sum(worker.memory_mib for worker in starting)
    free = max(0, host.memory_mib - workers - strangers)
    if not host.memory_mib or needed <= free:
        return None
    return Shortage(needed, free, host.memory_mib, workers, strangers)


def in_gb(mib: int) -> str:
    return f"{mib / 1024:.4g} GB"
