"""Which hosts are on their way, and from where.

A departure is recorded before the first cordon and removed once the host is whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from vgpuctl.model.departure import Departure
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.ledger import EntryKey
from vgpuctl.model.plan import Plan
from vgpuctl.model.record import ASLEEP
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.wish import Wish
from vgpuctl.planning.steps import Label, MarkAsleep, Shield, Unshield


def departures(fleet: Fleet, timetable: Timetable, shift: str) -> dict[str, Departure]:
    """Return the departure of each host of the timetable.

    A host that is already on its way keeps its origin. A host that had arrived, and was changed by another hand since,
    leaves the shift in which it arrived.
    """
    found: dict[str, Departure] = {}
    for host in dict.fromkeys(worker.host for worker in timetable.workers(fleet)):
        mine = timetable.workers_on(fleet, host)
        left = fleet.departures.get((timetable.name, host))
        if left is not None and not whole(mine, timetable):
            # Decision 0012: until the host is whole again only `to` changes, so a way back leads to where it came from.
            found[host] = replace(_last_whole(left, mine, timetable), to=shift)
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


def _last_whole(left: Departure, workers: Iterable[Worker], timetable: Timetable) -> Departure:
    """Return the state to which a host that is not whole goes back: usually the recorded one; see decision 0012."""
    workers = list(workers)
    shift = timetable.shifts.get(left.to)
    if shift is None or not arrived(left, workers, shift):
        return left
    awake = tuple(sorted(worker.name for worker in workers if shift.wakes(worker)))
    # A process may die after its last step and before it removes the entry (decision 0012).
    return replace(left, origin=left.to, since="", awake=awake, carried={w.name: w.vgpus for w in workers})


def arrived(left: Departure, workers: Iterable[Worker], shift: Shift) -> bool:
    """True if the host was in this shift after it had left, although that could no longer be recorded.

    The last write of a switch takes our record off each node that woke, and such a node has been alive since the
    departure. The other workers slept: their VMs are off, or their nodes say that they sleep.
    """
    return all(_woke(worker, left) if shift.wakes(worker) else _slept(worker) for worker in workers)


def _woke(worker: Worker, left: Departure) -> bool:
    if worker.node is None or worker.node.record is not None:
        return False
    # Kubernetes: the Lease's renewTime shows that the node was alive after the departure.
    return worker.name in left.awake or _is_later(worker.node.lease_renewed, left.since)


def _slept(worker: Worker) -> bool:
    record = worker.node.record if worker.node else None
    return not worker.on or (record is not None and record.state == ASLEEP)


def _is_later(time: str | None, than: str) -> bool:
    """True if `time` is later than `than`; False for a time that cannot be read."""
    try:
        return time is not None and datetime.fromisoformat(time) > datetime.fromisoformat(than)
    except (TypeError, ValueError):
        return False


def whole(workers: Iterable[Worker], timetable: Timetable) -> bool:
    """True if these workers are just as a shift wants them, and nothing is left to give back."""
    workers = list(workers)
    # Decision 0012: a worker that is awake and bears a mark of ours still has something to give back.
    marked = any(worker.on and worker.node is not None and worker.node.record is not None for worker in workers)
    return not marked and bool(_matching(workers, timetable))


def _matching(workers: list[Worker], timetable: Timetable) -> list[str]:
    shifts = timetable.shifts.items()
    return [name for name, shift in shifts if all(map(shift.as_wanted, workers))]


def on_their_way(fleet: Fleet, timetables: Iterable[Timetable]) -> list[Departure]:
    """Return the departures of hosts whose switch was cut short or is under way."""
    found = []
    for timetable in timetables:
        for host in dict.fromkeys(worker.host for worker in timetable.workers(fleet)):
            left = fleet.departures.get((timetable.name, host))
            if left is not None and left.to in timetable.shifts and on_its_way(fleet, timetable, host):
                found.append(left)
    return found


def on_its_way(fleet: Fleet, timetable: Timetable, host: str) -> bool:
    """True if a switch has begun on this host and has not ended."""
    left, mine = fleet.departures.get((timetable.name, host)), timetable.workers_on(fleet, host)
    if left is None or whole(mine, timetable):
        return False
    # The files may have lost the shift to which it was on its way.
    return left.to not in timetable.shifts or not arrived(left, mine, timetable.shifts[left.to])


def to_record(fleet: Fleet, wish: Wish, plan: Plan, now: str) -> dict[EntryKey, Departure]:
    """Return the departures that must be recorded before the first step of this plan is taken."""
    marks = Label | MarkAsleep | Shield | Unshield
    hosts = {fleet.host_of(step.subject) for step in plan if not isinstance(step, marks)}
    # Decision 0012: one merge patch for all hosts, before the first cordon. What cannot be written is not begun.
    leaving = (replace(left, since=left.since or now) for host, left in wish.departures.items() if host in hosts)
    return {left.key: left for left in leaving if fleet.departures.get(left.key) != left}
