"""A wish: what should become true of each worker. Commands differ only in the wish they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from vgpuctl.model.conduct import Conduct, Mode
from vgpuctl.model.departure import Departure
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import DrainOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """For people: which shift put it to sleep, and when it will be woken, as servers write times."""

    why: str
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerWish:
    """For one worker; None leaves a thing as it is. Its devices may be changed with `change`, else must be right.

    `before`: what it carried before, where its devices may be changed; `after`, on the way back: what it was to carry.
    `cold`: were it suspended, its state is discarded and it boots. `sleep`: what its node says while it sleeps.
    """

    vgpus: tuple[str, ...] | None = None
    change: bool = False
    awake: bool | None = None
    label: bool = False
    before: tuple[str, ...] | None = None
    after: tuple[str, ...] | None = None
    cold: bool = False
    sleep: Sleep | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadWish:
    """For one workload: at zero, or given back its size. `asleep_before`: was it at zero where the hosts come from?"""

    asleep: bool
    asleep_before: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """`timetable`: whose wish it is, where it is one's. `workloads`: what becomes of them, by their keys.

    `max_unavailable`: how many workers may be out at once; None: as many as there are.
    `departures`: of each host, how it was when it was last whole.
    `prune`: take our labels off nodes that are no workers of ours any more.
    """

    name: str
    catalogue: Catalogue
    workers: Mapping[str, WorkerWish]
    timetable: str = ""
    workloads: Mapping[str, WorkloadWish] = field(default_factory=dict)
    awake_before: frozenset[str] = frozenset()
    departures: Mapping[str, Departure] = field(default_factory=dict)
    drain: DrainOptions = field(default_factory=DrainOptions)
    max_unavailable: int | None = None
    conduct: Conduct = field(default_factory=Conduct)
    mode: Mode = Mode.SWAP
    prune: bool = False

    def only(self, workers: Iterable[str]) -> Wish:
        """The same wish for some of the workers. Workloads are scaled for those of all hosts, or, without any, not."""
        kept = set(workers)
        found = {name: wish for name, wish in self.workers.items() if name in kept}
        return replace(self, workers=found, workloads=self.workloads if found else {})

    def cold(self, workers: Iterable[str]) -> Wish:
        """The same wish, but these boot."""
        booting = {name: replace(self.workers[name], cold=True) for name in workers if name in self.workers}
        return replace(self, workers={**self.workers, **booting}) if booting else self
