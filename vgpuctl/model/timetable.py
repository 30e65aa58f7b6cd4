"""Timetables: which workers are awake in which shift, and when each shift begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from vgpuctl.basics.names import Names, is_glob
from vgpuctl.model.calendar import ALWAYS, Days, StayingDays
from vgpuctl.model.conduct import Conduct, Mode
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.profiles import Profile
from vgpuctl.model.selectors import Selector
from vgpuctl.model.share import Share
from vgpuctl.model.starts import Starts
from vgpuctl.model.timing import ANNOUNCE, HoldWhile, Retry, Timing
from vgpuctl.model.workloads import Workload, WorkloadSelector


@dataclass(frozen=True, slots=True)
class DrainOptions:
    """How pods leave a node; the names are kubectl's.

    `pod_selector`: only these pods leave; None: all. `skip_wait_for_delete_timeout_s`: how long after its end was due a
    pod is still waited for; 0: for ever.
    `namespaces`: options that replace all of these, by name or glob; no two globs contradict.
    `freeze`: the VM is suspended, so pods that ask for it may sleep along. `scaled`: workloads that are scaled to zero;
    their controllers end their pods.
    """

    # kubectl drain waits on a budget for ever; a switch must end in one shift or the other.
    timeout_s: float = 600.0
    grace_period_s: int | None = None
    force: bool = False
    delete_emptydir_data: bool = False
    pod_selector: Selector | None = None
    skip_wait_for_delete_timeout_s: float = 0.0
    # JupyterHub's notebooks are bare pods and would refuse every night, so options are set for each namespace.
    namespaces: Mapping[str, DrainOptions] = field(default_factory=dict)
    freeze: bool = False
    scaled: tuple[Workload, ...] = ()

    def of(self, namespace: str) -> DrainOptions:
        """Return one namespace's options.

        A name that is written out decides against globs, and both against the rest.
        """
        if not self.namespaces:
            return self
        if namespace in self.namespaces:
            return self.namespaces[namespace]
        globs = (glob for glob in self.namespaces if is_glob(glob))
        return next((self.namespaces[glob] for glob in globs if fnmatchcase(namespace, glob)), self)

    def within(self, seconds: float) -> DrainOptions:
        """Return the same options with this timeout, for all namespaces."""
        inside = {name: replace(options, timeout_s=seconds) for name, options in self.namespaces.items()}
        return replace(self, timeout_s=seconds, namespaces=inside)


@dataclass(frozen=True, slots=True)
class Shift:
    """A part of the day: which workers are awake in it. The timetable's other workers are asleep.

    `carrying`: which profile workers carry in it, if that changes with the shift. `scale`: the workloads that are at
    zero in it. `season`: the dates on which it may start; `never_on`: dates of these on which it does not.
    `timing`: the timetable's, except where the shift has its own. `where`: its place in the file.
    """

    name: str
    starts: tuple[str, ...]
    profiles: frozenset[str] = frozenset()
    workers: Names = field(default_factory=Names)
    carrying: tuple[tuple[Names, Profile], ...] = ()
    scale: tuple[WorkloadSelector, ...] = ()
    season: Days = ALWAYS
    never_on: tuple[Days, ...] = ()
    timing: Timing = field(default_factory=Timing)
    where: str = field(default="", compare=False)

    def profile_of(self, worker: str) -> Profile | None:
        """Return what this worker carries in this shift; None if profiles.yaml decides."""
        return next((profile for names, profile in self.carrying if worker in names), None)

    def names(self, worker: str, profile: str) -> bool:
        return profile in self.profiles or worker in self.workers

    def scales(self, workload: Workload) -> bool:
        return any(choice.means(workload) for choice in self.scale)

    def wakes(self, worker: Worker) -> bool:
        return self.names(worker.name, worker.profile)

    def as_wanted(self, worker: Worker) -> bool:
        """True if the worker is on or off as this shift wants it, and if on, carries what this shift gives it."""
        profile = self.profile_of(worker.name) if worker.on else None
        return worker.on is self.wakes(worker) and (profile is None or sorted(worker.vgpus) == sorted(profile.vgpus))


@dataclass(frozen=True, slots=True)
class Timetable:
    """The shifts of some workers. `max_unavailable`: how many workers may be out at once; None: all of them.

    `season`: the dates on which the timetable counts at all. `staying`: dates that stay in one shift. `announce`: how
    long before a start the coming switch is planned and forecast.
    """

    name: str
    timezone: str
    shifts: Mapping[str, Shift]
    drain: DrainOptions = field(default_factory=DrainOptions)
    conduct: Conduct = field(default_factory=Conduct)
    mode: Mode = Mode.SWAP
    # Decision 0009: waves are needs of the plan, not a semaphore of the engine.
    max_unavailable: Share | None = None
    season: Days = ALWAYS
    staying: tuple[StayingDays, ...] = ()
    hold_while: HoldWhile = field(default_factory=HoldWhile)
    retry: Retry = field(default_factory=Retry)
    announce: timedelta = ANNOUNCE

    def keeps(self, worker: str, profile: str) -> bool:
        """True if this worker is awake in some shift. Then this timetable decides about it."""
        return any(shift.names(worker, profile) for shift in self.shifts.values())

    @property
    def scales(self) -> bool:
        """True if some shift scales workloads. Then workloads must be seen."""
        return any(shift.scale for shift in self.shifts.values())

    def workers(self, fleet: Fleet) -> list[Worker]:
        return [worker for worker in fleet.workers.values() if self.keeps(worker.name, worker.profile)]

    def workers_on(self, fleet: Fleet, host: str) -> list[Worker]:
        return [worker for worker in fleet.on_host(host) if self.keeps(worker.name, worker.profile)]

    def profiles_of(self, worker: str) -> tuple[Profile, ...]:
        """Return the profiles that the shifts make this worker carry, if its profile changes with the shift."""
        found = (shift.profile_of(worker) for shift in self.shifts.values())
        return tuple(dict.fromkeys(profile for profile in found if profile is not None))

    def shift_at(self, now: datetime) -> tuple[Shift, datetime] | None:
        """Return the shift in force at `now`, and its start."""
        start = Starts(self).in_force(now)
        return (start.shift, start.at) if start else None

    def next_start(self, now: datetime) -> tuple[Shift, datetime] | None:
        """Return the next start of another shift than the one in force."""
        start = Starts(self).next_change(now)
        return (start.shift, start.at) if start else None

    def next_start_of(self, shift: str, now: datetime) -> datetime | None:
        """Return the next start of this one shift."""
        return Starts(self).next_of(shift, now)
