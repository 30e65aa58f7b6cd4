"""How much memory a vSphere cluster under HA admission control has reserved, and how much it may reserve.

What ESXi and each VM take besides is not known. So the limit reckoned here is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from vgpuctl.model.admission import Admission, ReservedShare, Slots
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import Host
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import stops, vgpus_wished


class HostBalance(NamedTuple):
    """One host's part, in MiB: what its leaving workers give back, what its starting workers take, and their names."""

    host: str
    gives: int
    takes: int
    starts: tuple[str, ...]

    @property
    def more(self) -> int:
        return self.takes - self.gives


@dataclass(frozen=True, slots=True)
class Cluster:
    """One vSphere cluster: the hosts on which HA counts.

    `certain`: only VMs for which HA certainly keeps room are reckoned.
    """

    fleet: Fleet
    admission: Admission
    hosts: tuple[Host, ...]
    certain: bool

    @classmethod
    def of(cls, fleet: Fleet, admission: Admission, *, certain: bool = True) -> Cluster:
        """Return the cluster without hosts in maintenance mode or not connected, on which HA does not count."""
        good = (host for host in fleet.under(admission) if host.connected and not host.maintenance)
        return cls(fleet, admission, tuple(good), certain)

    @property
    def name(self) -> str:
        return self.hosts[0].cluster if self.hosts else ""

    @property
    def memory_mib(self) -> int:
        return sum(host.memory_mib for host in self.hosts)

    def limit(self) -> int | None:
        """Return the most memory that may be reserved; None if memory is not what counts, or if it is not known."""
        if not all(host.memory_mib for host in self.hosts):
            return None
        match self.admission.policy:
            case ReservedShare() as share:
                # Only memory is reckoned, not processors (architecture.md, Where a wish is judged).
                return self.memory_mib * (100 - self.percent(share)) // 100
            case Slots(level=level):
                sizes = sorted(host.memory_mib for host in self.hosts)
                return sum(sizes[: max(0, len(sizes) - level)])
        return None

    def percent(self, share: ReservedShare) -> int:
        """Return the share that HA keeps free.

        If vCenter reckons it by itself, the least it can be (`certain`), or the most.
        """
        if not share.level:
            return share.percent
        reckoned = 100 * share.level / max(1, len(self.hosts))
        return min(share.percent, int(reckoned)) if self.certain else min(100, max(share.percent, ceil(reckoned)))

    def keeps(self) -> str:
        match self.admission.policy:
            case ReservedShare() as share:
                return f"{self.percent(share)} % of its memory"
            case Slots(level=level):
                return f"room for the failure of {level} host{'s' * (level != 1)}"
        return "whole hosts"

    def reserved(self) -> int:
        return sum(sum(self.reservations(host)) for host in self.hosts)

    def reservations(self, host: Host) -> Iterator[int]:
        """Yield the reservation of each VM that runs on this host."""
        # vSphere: all memory of a VM with a vGPU is reserved, so its size is its reservation.
        for worker in self.fleet.on_host(host.name):
            if worker.on:
                yield worker.memory_mib if worker.memory_locked and self._counts(worker.vm) else 0
        for stranger in self.fleet.strangers_on(host.name):
            if stranger.on:
                yield stranger.reserved_mib if self._counts(stranger.vm) else 0

    def balance(self, wish: Wish, host: Host) -> HostBalance:
        workers = [worker for worker in self.fleet.on_host(host.name) if worker.name in wish.workers]
        leaving = [worker for worker in workers if stops(wish, worker)]
        starting = [w for w in workers if wish.workers[w.name].awake and (not w.on or w in leaving)]
        gives = sum(worker.memory_mib for worker in leaving if worker.memory_locked and self._counts(worker.vm))
        return HostBalance(
            host.name, gives, sum(self.needs(wish, w) for w in starting), tuple(w.name for w in starting)
        )

    def needs(self, wish: Wish, worker: Worker) -> int:
        """Return the memory that this worker's VM reserves. A VM with vGPUs has all its memory reserved."""
        reserves = worker.memory_locked or (worker.name in wish.workers and vgpus_wished(wish, worker))
        return worker.memory_mib if reserves and self._counts(worker.vm) else 0

    def running(self, wish: Wish, host: Host) -> Iterator[int]:
        """Yield the reservation of each VM that runs on this host once the wish is done."""
        for worker in self.fleet.on_host(host.name):
            mine = wish.workers.get(worker.name)
            if worker.on if mine is None or mine.awake is None else mine.awake:
                yield self.needs(wish, worker)
        yield from (stranger.reserved_mib for stranger in self.fleet.strangers_on(host.name) if stranger.on)

    def _counts(self, vm: str) -> bool:
        # vSphere does not document whether HA keeps room for VMs that it does not restart. Refusals leave them out.
        return not self.certain or self.admission.counts(vm)
