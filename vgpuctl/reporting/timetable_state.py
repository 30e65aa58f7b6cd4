"""How the fleet stands to a timetable: which shift it is in, which it should be in, and when each worker wakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.orders import Override
from vgpuctl.model.profiles import Profile
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.workloads import Workload
from vgpuctl.planning.coming_starts import next_starts
from vgpuctl.planning.due import begun_early, coming, due


@dataclass(frozen=True, slots=True, kw_only=True)
class Waking:
    """The start of a shift that wakes a worker. `due`: the shift has begun, so the worker should be awake already."""

    timetable: str
    shift: str
    start: datetime
    due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimetableState:
    """How the fleet stands to one timetable.

    `current`: the shift whose workers are awake; None between shifts. `due`: the shift that an
    override orders, else the shift of the hour.
    """

    timetable: Timetable
    current: str | None
    due: str | None
    since: datetime | None
    next_shift: str | None
    next_start: datetime | None
    starts: Mapping[str, datetime | None]
    override: Override | None = None
    workers: tuple[Worker, ...] = ()

    def should_be_awake(self, worker: Worker) -> bool:
        """True if the current shift wakes the worker, whatever the hour: a person may have switched by hand."""
        shift = self.current or self.due
        return shift is not None and self.timetable.shifts[shift].wakes(worker)

    def wanted(self, worker: Worker) -> Profile | None:
        """Return the profile that the shift gives the worker; None if profiles.yaml decides."""
        shift = self.current or self.due
        return self.timetable.shifts[shift].profile_of(worker.name) if shift else None

    def waking(self, worker: Worker, profile: str = "") -> Waking | None:
        """Return when this timetable wakes the worker: now, if the shift of the hour does; else the next time.

        With `profile`, only shifts count in which the worker carries that profile.
        """
        return self._first({shift for shift, each in self.timetable.shifts.items() if _wakes(each, worker, profile)})

    def waking_of(self, workload: Workload) -> Waking | None:
        """Return when this timetable gives the workload its size back."""
        return self._first({shift for shift, each in self.timetable.shifts.items() if not each.scales(workload)})

    def _first(self, shifts: set[str]) -> Waking | None:
        name = self.timetable.name
        if self.due in shifts and self.due and self.since:
            return Waking(timetable=name, shift=self.due, start=self.since, due=True)
        coming = [(start, shift) for shift in shifts if (start := self.starts[shift])]
        if not coming:
            return None
        start, shift = min(coming)
        return Waking(timetable=name, shift=shift, start=start)


def _wakes(shift: Shift, worker: Worker, profile: str) -> bool:
    given = shift.profile_of(worker.name)
    return shift.wakes(worker) and (not profile or given is None or given.name == profile)


def state_of(fleet: Fleet, timetable: Timetable, now: datetime) -> TimetableState:
    takes = begun_early(fleet, timetable, now)
    now_due = due(timetable, fleet.orders, now, takes)
    following = coming(timetable, fleet.orders, now, takes)
    workers = timetable.workers(fleet)
    # A hold keeps its worker out of the shift on purpose, so the others say which shift it is.
    saying = [worker for worker in workers if not worker.hold] or workers
    matching = [name for name, shift in timetable.shifts.items() if all(map(shift.as_wanted, saying))]
    due_name = now_due.shift if now_due else None
    return TimetableState(
        timetable=timetable,
        current=due_name if due_name in matching else next(iter(matching), None),
        due=due_name,
        since=now_due.start if now_due else None,
        next_shift=following.shift if following else None,
        next_start=following.start if following else None,
        starts=next_starts(timetable, fleet.orders, now),
        override=now_due.override if now_due else None,
        workers=tuple(workers),
    )
