"""How the fleet stands to its timetable: which shift it is in, which it should be in, what is out of step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

    starts: Mapping[str, datetime | None]

    def wakes_at(self, worker: Worker) -> datetime | None:
        """When the timetable next begins a shift that this worker is awake in."""
        shifts = (name for name, shift in self.timetable.shifts.items() if shift.wakes(worker))
        return min((start for name in shifts if (start := self.starts[name])), default=None)


def standing(fleet: Fleet, catalogue: Catalogue, timetable: Timetable, now: datetime) -> Standing:
    due, following = timetable.shift_at(now), timetable.next_start(now)
    workers = timetable.workers(fleet)
    matching = [name for name, shift in timetable.shifts.items() if all(w.on is shift.wakes(w) for w in workers)]
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
        starts={name: timetable.next_start_of(name, now) for name in timetable.shifts},
        out_of_step=tuple(_out_of_step(fleet, catalogue, timetable, reference)),
    )


def _out_of_step(fleet: Fleet, catalogue: Catalogue, timetable: Timetable, shift: str | None) -> Iterator[str]:
    for worker in timetable.workers(fleet):
        awake = shift is not None and timetable.shifts[shift].wakes(worker)
        yield from (f"{worker.name} {what}" for what in _faults(worker, catalogue, should_be_awake=awake))


def _faults(worker: Worker, catalogue: Catalogue, *, should_be_awake: bool) -> Iterator[str]:
    if not equipped(worker, catalogue.profile(worker.profile).vgpus):
        yield f"should carry {worker.profile} (vgpuctl provision)"
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
