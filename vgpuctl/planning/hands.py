"""Which workers somebody powered on or suspended by hand, after their host had arrived in its shift."""

from __future__ import annotations

from collections.abc import Iterable

from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.planning.due import Due


def moved_by_hand(fleet: Fleet, timetable: Timetable, due: Due, hosts: Iterable[str]) -> dict[str, str]:
    """Return these workers, and what was done to each. They are left alone until the next start.

    A worker that is off is no such sign: a host that failed leaves VMs off, too, and these are brought back.
    """
    found = {}
    for host in hosts:
        key = (timetable.name, host)
        outcome = fleet.outcomes.get(key)
        # A host on its way is moved by us. Before it has arrived, nobody can say who moved what.
        if outcome is None or not outcome.arrived or not outcome.is_of(due.shift, due.start) or key in fleet.departures:
            continue
        for worker in fleet.on_host(host):
            if timetable.keeps(worker.name, worker.profile) and (how := _how(worker, timetable.shifts[due.shift])):
                found[worker.name] = how
    return found


def _how(worker: Worker, shift: Shift) -> str:
    record = worker.node.record if worker.node else None
    if shift.wakes(worker):
        # A worker that we suspend bears our record from before its drain (decision 0002).
        return "suspended by hand" if worker.power is Power.SUSPENDED and record is None else ""
    return "powered on by hand" if worker.on else ""
