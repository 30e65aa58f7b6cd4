"""Which workers somebody powered on or suspended by hand, after their host had arrived in its shift."""

from __future__ import annotations

from collections.abc import Iterable

from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.planning.departures import on_its_way
from vgpuctl.planning.due import Due
from vgpuctl.planning.outcomes import outcome_of


def moved_by_hand(fleet: Fleet, timetable: Timetable, due: Due, hosts: Iterable[str]) -> dict[str, str]:
    """Return these workers, and what was done to each. They are left alone until the next start.

    A worker that is off is no such sign: a host that failed leaves VMs off, too, and these are brought back.
    """
    found = {}
    for host in hosts:
        outcome = outcome_of(fleet, timetable, host, due)
        # A host on its way is moved by us. Before it has arrived, nothing shows who moved what.
        if outcome is None or not outcome.arrived or on_its_way(fleet, timetable, host):
            continue
        for worker in timetable.workers_on(fleet, host):
            if how := _how(worker, timetable.shifts[due.shift]):
                found[worker.name] = how
    return found


def _how(worker: Worker, shift: Shift) -> str:
    record = worker.node.record if worker.node else None
    if shift.wakes(worker):
        # A worker that we suspend bears our record from before its drain (decision 0002).
        return "suspended by hand" if worker.power is Power.SUSPENDED and record is None else ""
    return "powered on by hand" if worker.on else ""
