"""A switch of the daemon while it runs: whether it still does what is wanted, and what becomes of its hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from vgpuctl.basics.change import changed
from vgpuctl.daemon.rounds import Round, look, wish_for
from vgpuctl.engine.ports import Report
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.run_state import EVERYWHERE, RunState
from vgpuctl.model.codes import WAY_BACK_FAILED
from vgpuctl.model.departure import Key
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import DONE, FAILED, NOT_BEGUN, WENT_BACK, HostReport
from vgpuctl.model.ledger import Changes, Entry, EntryKey, outcome_key
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.wish import Wish
from vgpuctl.operations import Course
from vgpuctl.planning.departures import on_its_way
from vgpuctl.planning.outcomes import after_failure, arrivals, outcome_of
from vgpuctl.planning.signs import Kind, unmoved
from vgpuctl.planning.verdicts import Hindrance
from vgpuctl.reporting.verdicts import turns_round

#: How often a running switch looks for hosts that it could take up. Stops are looked for at each question.
MORE_EVERY = 5


class Surroundings(Protocol):
    """What a switch must know of the daemon around it."""

    def now(self) -> datetime: ...

    def why_stop(self) -> str:
        """Return why no switch may go on; "" if it may."""

    def takes(self, timetable: str) -> timedelta:
        """Return how long the coming switch of a timetable takes."""

    def taken(self, timetable: str) -> frozenset[str]:
        """Return the hosts on which switches of other timetables run."""


@dataclass(slots=True)
class Running:
    """One timetable's switch.

    `held`: its workers that were held as it began. `tried`: its hosts whose failure has been counted. `unseen`: their
    outcomes, until the ledger shows them.
    """

    began: Round
    shift: str
    around: Surroundings
    held: frozenset[str] = frozenset()
    tried: set[str] = field(default_factory=set)
    unseen: dict[Key, Outcome] = field(default_factory=dict)
    questions: int = 0

    def course(self, fleet: Fleet, goal: Goal, state: RunState) -> Course | None:
        """Return what this switch should do otherwise from now on."""
        if why := self.around.why_stop():
            return Course(stop=why)
        # Decision 0018: nothing is decided on an old picture.
        if fleet.stale:
            return None
        fleet = self._with_outcomes(fleet)
        found = look(
            fleet,
            self.began.files,
            self.began.timetable,
            self.around.now(),
            self.around.takes(self.began.timetable.name),
        )
        if found is None or (found.due.shift, found.due.start) != (self.began.due.shift, self.began.due.start):
            return Course(stop=turns_round(self.shift, found.due if found else None))
        if why := self._ordered_otherwise(fleet, found, goal) or self._too_late(fleet, found, goal, state):
            return Course(stop=why)
        failed = {outcome_key(*each.key): each for each in self._failures(fleet, found, state)}
        self.questions += 1
        more = self._more(fleet, found, goal, state) if self.questions % MORE_EVERY == 0 else None
        return Course(record=failed, more=more) if failed or more else None

    def outcomes(self, report: Report, fleet: Fleet) -> Changes:
        """Return the entries that say, at the end, what became of each host."""
        fleet, table, due = self._with_outcomes(fleet), self.began.timetable, self.began.due
        changes: dict[EntryKey, Entry | None] = {outcome_key(*key): outcome for key, outcome in self.unseen.items()}
        for host in report.hosts:
            if host.host not in self.began.verdicts or not _failed(host):
                continue
            before = outcome_of(fleet, table, host.host, due)
            if host.host in self.tried and before is not None:
                # The way back is over: what it changed by itself is a sign from now on, and it may have failed, too.
                signs, code = self._with_files(host.failed_on), self._code(host.code)
                outcome = replace(before, failed_on=signs, why=host.why, code=code)
            else:
                failed = replace(host, failed_on=self._with_files(host.failed_on), code=self._code(host.code))
                outcome = after_failure(fleet, table, due, failed, self.around.now())
            changes[outcome_key(*outcome.key)] = outcome
        if self.shift == due.shift:
            changes |= arrivals(fleet, table, due, (host.host for host in report.hosts if host.end == DONE))
        return changes

    def _code(self, code: str) -> str:
        """Return the code of a failure. In a switch that only takes hosts back, it is that of a way back."""
        return code if self.shift == self.began.due.shift else WAY_BACK_FAILED

    def _with_files(self, signs: Mapping[str, str]) -> dict[str, str]:
        return {**signs, Kind.FILES: self.began.files.sign(self.began.timetable.name)}

    def _with_outcomes(self, fleet: Fleet) -> Fleet:
        """Return the fleet with outcomes that the ledger does not show yet. Once it did, it decides alone."""
        shown = {key for key, outcome in self.unseen.items() if fleet.outcomes.get(key) == outcome}
        self.unseen = {key: outcome for key, outcome in self.unseen.items() if key not in shown}
        return changed(fleet, outcomes={**fleet.outcomes, **self.unseen}) if self.unseen else fleet

    def _ordered_otherwise(self, fleet: Fleet, found: Round, goal: Goal) -> str:
        """Return what a person ordered since it began that forbids what it does; "" if nothing."""
        for host in sorted({fleet.host_of(name) for name in goal.wish.workers} & found.verdicts.keys()):
            verdict = found.verdicts[host]
            if verdict.why in {Hindrance.MAINTENANCE, Hindrance.PAUSED}:
                return f"{self.shift} on {host} stops at this point: {verdict.why}."
        held = held_workers(fleet, goal.wish.workers, self.around.now()) - self.held
        return f"{self.shift} is planned anew: {', '.join(sorted(held))} is held now." if held else ""

    def _too_late(self, fleet: Fleet, found: Round, goal: Goal, state: RunState) -> str:
        """Return why a host may not begin any more that has not begun: a server may have been silent until now."""
        asked = state.begun()
        begun = {fleet.host_of(name) for name in asked}
        for host in sorted({fleet.host_of(name) for name in goal.wish.workers} - begun):
            verdict = found.verdicts.get(host)
            if verdict and verdict.why in {Hindrance.SKIPPED, Hindrance.TOO_SHORT, Hindrance.PODS}:
                return f"{self.shift} on {host} does not begin any more: {verdict.why}."
        return ""

    def _failures(self, fleet: Fleet, found: Round, state: RunState) -> Iterator[Outcome]:
        """Yield the outcome of each host that has failed since the last look.

        It is written as soon as the host turns back: after a crash, the next instance finishes the way back.
        """
        failures = {**state.gave_up, **state.going_back}
        # A host that was taken up again has not failed since.
        self.tried &= failures.keys()
        for host, cause in failures.items():
            if host != EVERYWHERE and host not in self.tried and host in self.began.verdicts:
                self.tried.add(host)
                # What the way back changes by itself is no reason for another try. The end of the run adds it.
                signs = self._with_files(unmoved(state.failed_on.get(host, {})))
                failed = HostReport(host=host, end=FAILED, why=str(cause), code=self._code(cause.code), failed_on=signs)
                outcome = after_failure(fleet, found.timetable, found.due, failed, found.now)
                self.unseen[outcome.key] = outcome
                yield outcome

    def _more(self, fleet: Fleet, found: Round, goal: Goal, state: RunState) -> Wish | None:
        """Return a wish for hosts that could begin now: refused before, held before, or due for another try."""
        ended = state.going_back.keys() | state.gave_up.keys() | state.held_back.keys()
        under_way = {fleet.host_of(name) for name in goal.wish.workers} - ended
        free = found.hosts(self.shift) - under_way - self.around.taken(self.began.timetable.name)
        moving = {host for host in free & state.going_back.keys() if on_its_way(fleet, self.began.timetable, host)}
        if not free - moving:
            return None
        return wish_for(fleet, found, self.shift, free - moving)[0]


def _failed(host: HostReport) -> bool:
    """True if a switch of this host failed, or was held back because another host's failed."""
    return host.end in {WENT_BACK, FAILED} or (host.end == NOT_BEGUN and bool(host.failed_on))


def held_workers(fleet: Fleet, names: Iterable[str], now: datetime) -> frozenset[str]:
    """Return the workers among these that a person holds."""
    workers = (fleet.workers[name] for name in names if name in fleet.workers)
    return frozenset(worker.name for worker in workers if worker.hold is not None and worker.hold.active(now))
