"""What may happen on each host now: the order of precedence of docs/how-to/daemon.md, as one function.

A verdict is found anew at each look, from the fleet and the ledger alone. So a restart, another instance or a person
with kubectl changes nothing about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from vgpuctl.model.codes import WAY_BACK_FAILED
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.timetable import Timetable
from vgpuctl.planning.departures import on_its_way
from vgpuctl.planning.due import Due
from vgpuctl.planning.outcomes import in_shift, outcome_of
from vgpuctl.planning.pods.holding import holding
from vgpuctl.planning.signs import changed_since


class Hindrance(StrEnum):
    """Why nothing begins on a host."""

    MAINTENANCE = "maintenance"
    PAUSED = "paused"
    PARKED = "parked"
    RETRY = "retry"
    SKIPPED = "skipped"
    TOO_SHORT = "too short"
    PODS = "pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What may happen on one host.

    `shift`: the shift to put in force there now; "" if nothing may move. `why`: what hinders the shift that is due;
    None if nothing does. `until`: when that ends by itself, if it is known. `what`: what it depends on, in words.
    `changed`: what has changed since the last try failed.
    """

    host: str
    shift: str
    why: Hindrance | None = None
    until: datetime | None = None
    what: str = ""
    changed: tuple[str, ...] = ()


def verdicts(fleet: Fleet, timetable: Timetable, now_due: Due, now: datetime, files: str) -> dict[str, Verdict]:
    """Return the verdict for each host of the timetable. `files`: the digest of the files in force."""
    hosts: dict[str, list[Worker]] = {}
    for worker in timetable.workers(fleet):
        hosts.setdefault(worker.host, []).append(worker)
    return {host: _Judge(fleet, timetable, now_due, now, files).verdict(host, mine) for host, mine in hosts.items()}


@dataclass(frozen=True, slots=True)
class _Judge:
    fleet: Fleet
    timetable: Timetable
    due: Due
    now: datetime
    files: str

    def verdict(self, host: str, workers: list[Worker]) -> Verdict:
        shift, moving = self.due.shift, on_its_way(self.fleet, self.timetable, host)
        outcome = outcome_of(self.fleet, self.timetable, host, self.due)
        changes = changed_since(self.fleet, outcome.failed_on, self.files) if outcome else ()
        if (order := self.fleet.orders.maintenance.get(host)) and order.active(self.now):
            return Verdict(host=host, shift="", why=Hindrance.MAINTENANCE, until=order.until)
        pause = self.fleet.orders.paused(self.now)
        if pause and (pause.at_once or not moving):
            return Verdict(host=host, shift="", why=Hindrance.PAUSED, until=pause.until)
        if outcome and not changes and (failed := self._failed(host, outcome)):
            return self._back(failed) if moving and outcome.code != WAY_BACK_FAILED else failed
        there = (outcome is not None and outcome.arrived) or in_shift(self.fleet, self.timetable, shift, host)
        if moving or there:
            # Skipping and waiting count only before the first write. A shift that was in force once is kept.
            return Verdict(host=host, shift=shift, changed=changes)
        return self._before_the_start(host, workers, outcome) or Verdict(host=host, shift=shift, changed=changes)

    def _failed(self, host: str, outcome: Outcome) -> Verdict | None:
        """Return why the host is not tried again now."""
        if outcome.parked:
            return Verdict(host=host, shift="", why=Hindrance.PARKED, what=outcome.why)
        if outcome.again and self.now < outcome.again:
            return Verdict(host=host, shift="", why=Hindrance.RETRY, until=outcome.again, what=outcome.why)
        return None

    def _back(self, verdict: Verdict) -> Verdict:
        """Return the verdict for a host that was left half-way by a failure: it goes back to where it came from."""
        origin = self.fleet.departures[(self.timetable.name, verdict.host)].origin
        shift = origin if origin in self.timetable.shifts else ""
        return Verdict(host=verdict.host, shift=shift, why=verdict.why, until=verdict.until, what=verdict.what)

    def _before_the_start(self, host: str, workers: list[Worker], outcome: Outcome | None) -> Verdict | None:
        # A person's word is obeyed at once: no rule of the timetable holds an override back.
        if self.due.override is not None:
            return None
        timing, start, ends = self.timetable.shifts[self.due.shift].timing, self.due.start, self.due.ends
        if timing.min_run and ends and ends - self.now < timing.min_run:
            return Verdict(host=host, shift="", why=Hindrance.TOO_SHORT, until=ends)
        if timing.skip_after is not None and outcome is None and self.now >= start + timing.skip_after:
            return Verdict(host=host, shift="", why=Hindrance.SKIPPED, until=ends)
        begin_by = None if timing.begin_by is None else start + timing.begin_by
        if begin_by is not None and self.now >= begin_by:
            return None
        leaving = (worker.name for worker in workers if not self.timetable.shifts[self.due.shift].wakes(worker))
        if pods := holding(self.fleet, self.timetable, leaving):
            what = ", ".join(str(pod) for pod in pods[:3]) + (", …" if len(pods) > 3 else "")
            return Verdict(host=host, shift="", why=Hindrance.PODS, until=begin_by, what=what)
        return None
