"""A wish: what should become true of each worker. Commands differ only in the wish they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from vgpuctl.model.conduct import Conduct, Mode
from vgpuctl.model.departure import Departure
from vgpuctl.model.orders import Maintenance
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import DrainOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """Why a worker sleeps, for people: which shift put it to sleep, and when it wakes, as servers write times."""

    why: str
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerWish:
    """The wish for one worker; None leaves a thing as it is.

    With `change`, its devices may be changed; else they must be right.
    `before`: what it carried before, if its devices may be changed. `after`, on the way back: what it was to carry.
    `cold`: if it is suspended, discard its state. `given_up`: the UIDs of pods that may be lost with it. `sleep`: what
    its node says while it sleeps.
    """

    vgpus: tuple[str, ...] | None = None
    change: bool = False
    awake: bool | None = None
    label: bool = False
    before: tuple[str, ...] | None = None
    after: tuple[str, ...] | None = None
    cold: bool = False
    given_up: frozenset[str] = frozenset()
    sleep: Sleep | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadWish:
    """The wish for one workload: at zero, or with its size given back.

    `asleep_before`: whether it was at zero in the shift that the hosts come from.
    """

    asleep: bool
    asleep_before: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What should become true of each worker.

    `timetable`: the timetable that the wish comes from; "" if none. `workloads`: what is wished, by their keys.
    `max_unavailable`: how many workers may be out at once; None: as many as there are.
    `departures`: how each host was when it was last whole.
    `prune`: take our labels off nodes that are no longer workers of ours.
    `maintenance`: by host, what was ordered when the wish was made. `include_held`: move workers that a person holds,
    and workers of these hosts, too.
    `drain_first`: the UIDs of the pods that the last try failed on. They leave before any other pod of their host.
    """

    name: str
    catalogue: Catalogue
    workers: Mapping[str, WorkerWish]
    timetable: str = ""
    workloads: Mapping[str, WorkloadWish] = field(default_factory=dict)
    awake_before: frozenset[str] = frozenset()
    # Decision 0012: recorded before the first cordon of all.
    departures: Mapping[str, Departure] = field(default_factory=dict)
    drain: DrainOptions = field(default_factory=DrainOptions)
    max_unavailable: int | None = None
    conduct: Conduct = field(default_factory=Conduct)
    mode: Mode = Mode.SWAP
    prune: bool = False
    maintenance: Mapping[str, Maintenance] = field(default_factory=dict)
    include_held: bool = False
    drain_first: frozenset[str] = frozenset()

    def only(self, workers: Iterable[str]) -> Wish:
        """Return the same wish for some of the workers. Workloads stay in it, unless no worker is left."""
        kept = set(workers)
        found = {name: wish for name, wish in self.workers.items() if name in kept}
        return replace(self, workers=found, workloads=self.workloads if found else {})

    def cold(self, workers: Iterable[str]) -> Wish:
        """Return the same wish, with these workers booting."""
        booting = {name: replace(self.workers[name], cold=True) for name in workers if name in self.workers}
        return replace(self, workers={**self.workers, **booting}) if booting else self
