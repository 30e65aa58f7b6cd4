"""How the fleet stands to its timetable: which shift it is in, which it should be in, what is out of step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable
from vgpuctl.planning.steps import equipped, missing_signs


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`current`: the shift whose workers are awake; None between shifts. `due`: the shift of the hour."""

    timetable: Timetable
    now: datetime
    current: str | None
    due: str | None
    since: datetime | None
    next_shift: str | None
    next_start: datetime | None
    out_of_step: tuple[str, ...]

    def wakes_at(self, worker: str) -> datetime | None:
        """When the timetable next begins a shift that this worker is awake in."""
        starts = (self.timetable.next_start_of(name, self.now) for name in self._shifts_of(worker))
        return min((start for start in starts if start), default=None)

    def _shifts_of(self, worker: str) -> Iterator[str]:
        return (name for name, shift in self.timetable.shifts.items() if worker in shift.awake)


def standing(fleet: Fleet, catalogue: Catalogue, timetable: Timetable, now: datetime) -> Standing:
    due, following = timetable.shift_at(now), timetable.next_start(now)
    awake = {name for name in timetable.workers if name in fleet.workers and fleet.worker(name).on}
    matching = [name for name, shift in timetable.shifts.items() if awake == set(shift.awake) & fleet.workers.keys()]
    due_name = due[0].name if due else None
    current = due_name if due_name in matching else next(iter(matching), None)
    reference = current or due_name
    return Standing(
        timetable=timetable,
        now=now,
        current=current,
        due=due_name,
        since=due[1] if due else None,
        next_shift=following[0].name if following else None,
        next_start=following[1] if following else None,
        out_of_step=tuple(_out_of_step(fleet, catalogue, timetable, reference)),
    )


def _out_of_step(fleet: Fleet, catalogue: Catalogue, timetable: Timetable, shift: str | None) -> Iterator[str]:
    awake = timetable.shifts[shift].awake if shift else ()
    for name in timetable.workers:
        if name not in fleet.workers:
            yield f"{name} is no VM of vCenter"
            continue
        worker = fleet.worker(name)
        yield from (f"{name} {what}" for what in _faults(worker, catalogue, should_be_awake=name in awake))


def _faults(worker: Worker, catalogue: Catalogue, *, should_be_awake: bool) -> Iterator[str]:
    if not equipped(worker, catalogue.wanted(worker.name).vgpus):
        yield f"should carry {catalogue.workers[worker.name]} (vgpuctl provision)"
    if worker.on and not should_be_awake:
        yield "is on, but should be asleep"
    if should_be_awake and not worker.on:
        yield "should be on"
    elif should_be_awake and (missing := missing_signs(worker)):
        yield f"is not back: {missing}"
    if worker.on and worker.node and worker.node.unschedulable:
        yield "is cordoned" if worker.node.record else "is cordoned, not by vgpuctl"
    if worker.node and worker.node.labels.get(catalogue.label) != catalogue.carried(worker.vgpus):
        yield f"has a label {catalogue.label} that is not true (vgpuctl label-nodes)"
