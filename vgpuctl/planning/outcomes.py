"""What is noted about a start on each host: that the host has arrived, or how often a switch to it has failed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import HostReport
from vgpuctl.model.ledger import Changes, outcome_key
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.timetable import Timetable
from vgpuctl.planning.departures import whole
from vgpuctl.planning.due import Due

#: A pause that was doubled so often outlasts every shift.
MOST_DOUBLINGS = 10


def outcome_of(fleet: Fleet, timetable: Timetable, host: str, due: Due) -> Outcome | None:
    """Return what became of the start that is due."""
    found = fleet.outcomes.get((timetable.name, host))
    return found if found and found.is_of(due.shift, due.start) else None


def in_shift(fleet: Fleet, timetable: Timetable, shift: str, host: str) -> bool:
    """True if all of the timetable's workers on this host are as the shift wants them."""
    mine = timetable.workers_on(fleet, host)
    return bool(mine) and all(map(timetable.shifts[shift].as_wanted, mine))


def arrivals(fleet: Fleet, timetable: Timetable, due: Due, hosts: Iterable[str]) -> Changes:
    """Return the outcomes to write for hosts that are whole in the shift that is due, where that is news."""
    changes: dict[tuple[str, ...], Outcome] = {}
    for host in hosts:
        before = outcome_of(fleet, timetable, host, due)
        if (before is None or not before.arrived) and in_shift(fleet, timetable, due.shift, host):
            arrived = Outcome(timetable=timetable.name, host=host, shift=due.shift, start=due.start, arrived=True)
            changes[outcome_key(*arrived.key)] = arrived
    return changes


def leftovers(fleet: Fleet, timetable: Timetable, hosts: Iterable[str]) -> Changes:
    """Return the departures to delete: a process died after its last step, and the host is whole."""
    keys = ((timetable.name, host) for host in hosts)
    return {key: None for key in keys if key in fleet.departures and _whole(fleet, timetable, key[1])}


def _whole(fleet: Fleet, timetable: Timetable, host: str) -> bool:
    mine = timetable.workers_on(fleet, host)
    return bool(mine) and whole(mine, timetable)


def after_failure(fleet: Fleet, timetable: Timetable, due: Due, failed: HostReport, now: datetime) -> Outcome:
    """Return the outcome after one more failure: the next try waits twice as long, and after the last one parks."""
    before, retry = outcome_of(fleet, timetable, failed.host, due), timetable.retry
    tries = (before.tries if before else 0) + 1
    return Outcome(
        timetable=timetable.name,
        host=failed.host,
        shift=due.shift,
        start=due.start,
        arrived=before is not None and before.arrived,
        tries=tries,
        again=now + retry.pause * 2 ** min(tries - 1, MOST_DOUBLINGS),
        parked=tries >= retry.tries,
        why=failed.why,
        code=failed.code,
        failed_on=failed.failed_on,
    )
