"""Which hosts are on their way, and from where: recorded before the first cordon, taken off once they are whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vgpuctl.model.departure import Departure, Key
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.plan import Plan
from vgpuctl.model.timetable import Timetable
from vgpuctl.model.wish import Wish
from vgpuctl.planning.steps import Label, MarkAsleep, Shield, Unshield


def departures(fleet: Fleet, timetable: Timetable, shift: str) -> dict[str, Departure]:
    """For each host of the timetable. One that is on its way already keeps what it left."""
    found: dict[str, Departure] = {}
    for host in dict.fromkeys(worker.host for worker in timetable.workers(fleet)):
        mine = [worker for worker in fleet.on_host(host) if timetable.keeps(worker.name, worker.profile)]
        left = fleet.departures.get((timetable.name, host))
        if left is not None and not whole(mine, timetable):
            found[host] = replace(left, to=shift)
            continue
        found[host] = Departure(
            timetable=timetable.name,
            host=host,
            origin=next(iter(_matching(mine, timetable)), ""),
            to=shift,
            awake=tuple(sorted(worker.name for worker in mine if worker.on)),
            carried={worker.name: worker.vgpus for worker in mine},
        )
    return found


def whole(workers: Iterable[Worker], timetable: Timetable) -> bool:
    """Are they just as a shift wants them, with nothing left to give back?"""
    workers = list(workers)
    marked = any(worker.on and worker.node is not None and worker.node.record is not None for worker in workers)
    return not marked and bool(_matching(workers, timetable))


def _matching(workers: list[Worker], timetable: Timetable) -> list[str]:
    shifts = timetable.shifts.items()
    return [name for name, shift in shifts if all(map(shift.as_wanted, workers))]


def on_their_way(fleet: Fleet, timetables: Iterable[Timetable]) -> list[Departure]:
    """Those that were cut short, or are at it now."""
    found = []
    for timetable in timetables:
        for host in dict.fromkeys(worker.host for worker in timetable.workers(fleet)):
            mine = [worker for worker in fleet.on_host(host) if timetable.keeps(worker.name, worker.profile)]
            left = fleet.departures.get((timetable.name, host))
            if left is not None and left.to in timetable.shifts and not whole(mine, timetable):
                found.append(left)
    return found


def to_record(fleet: Fleet, wish: Wish, plan: Plan, now: str) -> dict[Key, Departure | None]:
    """What must be written down before the first step of this plan is taken."""
    marks = Label | MarkAsleep | Shield | Unshield
    hosts = {fleet.host_of(step.worker) for step in plan if not isinstance(step, marks)}
    leaving = (replace(left, since=left.since or now) for host, left in wish.departures.items() if host in hosts)
    return {left.key: left for left in leaving if fleet.departures.get(left.key) != left}
