"""The one operation behind every command and the daemon: look, plan, refuse or carry out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from vgpuctl.engine.ports import Report, World
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.recorder import Recorder
from vgpuctl.engine.run_state import RunState
from vgpuctl.engine.runner import Listener, Runner
from vgpuctl.engine.steering import Steering, Turn, joined
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import ExitCode, PassingError, RefusedError, StoppedError, VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import DONE, FAILED, NOT_BEGUN, WENT_BACK, Entry, HostReport
from vgpuctl.model.ledger import Changes
from vgpuctl.model.plan import Plan, Remark
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.requests import PatchNode, Request
from vgpuctl.model.wish import Wish
from vgpuctl.planning.checks.refusals import refusals
from vgpuctl.planning.departures import to_record
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import Cordon, Drain, Label, MarkAsleep, ScaleDown, ScaleUp, Uncordon
from vgpuctl.reporting.codes import more_about
from vgpuctl.reporting.notices import notices
from vgpuctl.reporting.remarks import remarks, suspend_slower_than_boot
from vgpuctl.reporting.step_history import Earlier, earlier

#: The ends that leave a host in exactly one shift.
WHOLE = {DONE, WENT_BACK, NOT_BEGUN}

MakeWish = Callable[[Fleet], Wish]
MakeFormer = Callable[[Wish], Wish]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would be done and what is refused: the content of a dry run. `earlier`: how long such steps took before."""

    fleet: Fleet
    wish: Wish
    plan: Plan
    refusals: tuple[Refusal, ...] = ()
    earlier: Earlier = field(default_factory=Earlier)
    remarks: tuple[Remark, ...] = ()

    @property
    def disturbs(self) -> bool:
        """True if the plan touches pods or running VMs. Then a person is asked."""
        return any(step.disturbs for step in self.plan)

    @property
    def goes_into_journal(self) -> bool:
        """True if the plan changes more than marks on nodes. Then the journal records it."""
        return any(step.lasts for step in self.plan)


def look_ahead(fleet: Fleet, wish: Wish) -> Preview:
    """Plan the wish. Refused hosts are taken out of it; the others proceed."""
    found = refusals(fleet, wish)
    refused_hosts = {refusal.host for refusal in found}
    accepted = wish.only(
        name for name in wish.workers if name in fleet.workers and fleet.workers[name].host not in refused_hosts
    )
    steps = plan(fleet, accepted)
    refused = tuple(refusal for refusal in found if _has_work(fleet, wish, refusal.host))
    # Hosts are independent groups: one refusal holds back its own host, unless the timetable wants all or none.
    if refused and wish.conduct.all_or_nothing:
        accepted, steps = wish.only(()), Plan()
    return Preview(fleet=fleet, wish=accepted, plan=steps, refusals=refused, remarks=remarks(fleet, accepted))


def with_history(preview: Preview, entries: Iterable[Entry]) -> Preview:
    """Return the preview with what earlier switches show about it."""
    history = earlier(entries)
    costly = suspend_slower_than_boot(preview.plan, preview.fleet, history)
    return replace(preview, earlier=history, remarks=preview.remarks + costly)


def _has_work(fleet: Fleet, wish: Wish, host: str) -> bool:
    """True if the host has something to do. Without work there is nothing to refuse."""
    host_wish = replace(wish.only(worker.name for worker in fleet.on_host(host)), prune=False, workloads={})
    return bool(plan(fleet, host_wish))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What a running operation should do otherwise.

    `stop`: why it ends. `more`: a wish for hosts to take up now. `record`: entries to write.
    """

    stop: str = ""
    more: Wish | None = None
    record: Changes = field(default_factory=dict)


class Running(Protocol):
    """Something that carries out a goal, until it has ended or is interrupted."""

    def run(self) -> Report: ...
    def interrupt(self, *, leave_tasks: bool = False) -> None: ...


def keep_course(_fleet: Fleet, _goal: Goal, _state: RunState) -> Course | None:
    """Change nothing about a running operation, as a command does."""
    return None


def nothing_more(_report: Report, _fleet: Fleet) -> Changes:
    """Write nothing but the ends of departures."""
    return {}


@dataclass(slots=True)
class Operation:
    """Carries out a plan under the acting Lease. `timetable`: the plan's timetable, for the journal.

    `orders`: entries that are written with the departures, before anything is touched. `course`: asked once a second
    what to do otherwise. `outcomes`: entries that are written at the end. `make_runner`: another runner, such as one in
    virtual time.
    """

    world: World
    listener: Listener
    timetable: str = ""
    orders: Changes = field(default_factory=dict)
    course: Callable[[Fleet, Goal, RunState], Course | None] = keep_course
    outcomes: Callable[[Report, Fleet], Changes] = nothing_more
    make_runner: Callable[[World, Goal, Listener, Steering], Running] = Runner
    _runner: Running | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)
    _departures: dict[str, Departure] = field(default_factory=dict, init=False)

    def interrupt(self, *, leave_tasks: bool = False) -> None:
        """Stop at the next safe point. With `leave_tasks`, vCenter's tasks are left to a later run."""
        self._stopped = True
        if self._runner is not None:
            self._runner.interrupt(leave_tasks=leave_tasks)

    def carry_out(self, make_wish: MakeWish, former: MakeFormer | None) -> Report:
        """Carry out the wish, and then finish its journal entry. A journal that fails delays nothing."""
        recorder = Recorder(self.listener, self.world.journal)
        try:
            return self._under_the_lease(recorder, make_wish, former)
        finally:
            recorder.close()

    def _under_the_lease(self, recorder: Recorder, make_wish: MakeWish, former: MakeFormer | None) -> Report:
        """Take the Lease, look again (another instance may have acted during the wait), and run."""
        # Decision 0004: the Lease is taken only for a plan that is not empty, so looking costs no write.
        self.world.lease.acquire(recorder.say, lambda: self._stopped)
        try:
            fleet = self._current_fleet()
            # Decision 0019: another instance may have acted meanwhile, so the plan is made again from a fresh look.
            preview = look_ahead(fleet, make_wish(fleet))
            if preview.refusals and not preview.plan:
                raise refused(preview)
            if self._stopped:
                raise StoppedError("Stopped before the first step. Nothing was changed.")
            # Without a right, a switch would end in the middle, with nodes cordoned or pods gone.
            self.world.sender.check(requests_ahead(preview, self.world.clock.utc()))
            # Decision 0012: what cannot be written down is not begun.
            self._record_departures(preview)
            self.world.sender.announce(notices(preview.fleet, preview.wish, preview.plan))
            if preview.goes_into_journal:
                recorder.begin(preview.wish.name, self.timetable, self.world.clock.utc())
            former_wish = former(preview.wish) if former else None
            goal = Goal(wish=preview.wish, former=former_wish, blind_s=self.world.blind_s)
            self._runner = self.make_runner(self.world, goal, recorder, partial(self._turn, former))
            if self._stopped:
                self._runner.interrupt()
            report = self._runner.run()
            self._write_the_end(report)
            recorder.end(report)
            return report
        finally:
            self.world.lease.release()

    def _current_fleet(self) -> Fleet:
        """Return the fleet as both servers report it now: the picture that was planned on may be older than the
        Lease."""
        # Decision 0019: one update call to vCenter, and one list of nodes, pods and workloads each.
        self.world.observer.refresh()
        fleet = self.world.observer.fleet().with_ledger(self.world.ledger.read())
        if unheard := fleet.unheard():
            raise PassingError(f"{unheard}. Nothing was changed.")
        return fleet

    def _record_departures(self, preview: Preview) -> None:
        """Record, before the first cordon, the shift that each host leaves: one write for all hosts."""
        leaving = to_record(preview.fleet, preview.wish, preview.plan, self.world.clock.utc())
        self._departures |= preview.wish.departures if preview.plan else {}
        if leaving or self.orders:
            self.world.ledger.write({**self.orders, **leaving})

    def _turn(self, former: MakeFormer | None, fleet: Fleet, goal: Goal, state: RunState) -> Turn | None:
        """Return what the run does otherwise from now on, if anything."""
        course = self.course(fleet, goal, state)
        if course is None or course.stop:
            return Turn(stop=course.stop) if course else None
        preview = look_ahead(fleet, course.more or goal.wish.only(()))
        hosts = frozenset(fleet.host_of(step.subject) for step in preview.plan) - {""}
        if not hosts:
            return Turn(record=course.record) if course.record else None
        wish = joined(goal.wish, preview.wish.only(worker.name for host in hosts for worker in fleet.on_host(host)))
        leaving = to_record(fleet, preview.wish, preview.plan, self.world.clock.utc())
        self._departures |= {host: left for host, left in preview.wish.departures.items() if host in hosts}
        more = replace(goal, wish=wish, former=former(wish) if former else None)
        return Turn(goal=more, hosts=hosts, record={**course.record, **leaving})

    def _write_the_end(self, report: Report) -> None:
        """Delete the departures of hosts that are whole, and write what became of them: one write for all hosts.

        If it fails, that does no harm: the next departure overwrites a leftover.
        """
        whole_hosts = {host.host for host in report.hosts if host.end in WHOLE}
        # Decision 0012: an entry of a host that is whole says nothing any more.
        ended: Changes = {left.key: None for host, left in self._departures.items() if host in whole_hosts}
        with suppress(VgpuctlError):
            if changes := {**ended, **self.outcomes(report, self.world.observer.fleet())}:
                self.world.ledger.write(changes)


def requests_ahead(preview: Preview, utc: str) -> Iterator[Request]:
    """Yield requests of each kind that the plan will send, as far as today's picture shows them."""
    for step in preview.plan:
        worker = preview.fleet.find(step.subject)
        if isinstance(step, Drain | ScaleDown | ScaleUp):
            yield from step.requests(preview.fleet, utc)
            yield from step.overdue(preview.fleet) if step.overdue_after_s < math.inf else ()
        elif isinstance(step, Cordon | Label | MarkAsleep | Uncordon) and worker and worker.node:
            yield PatchNode(node=worker.node.name)
        elif step.tasks:
            yield from step.requests(preview.fleet, utc)


def refused(preview: Preview) -> RefusedError:
    """Return all refusals as one error, for an operation that has touched nothing."""
    lines = []
    for refusal in preview.refusals:
        lines += [refusal.message, *(f"  {detail}" for detail in refusal.details)]
    hints = dict.fromkeys(refusal.hint for refusal in preview.refusals)
    end = f"Nothing was changed. {more_about(refusal.code for refusal in preview.refusals)}"
    return RefusedError("\n".join(lines), hint="\n".join([*hints, end]))


def exit_code(report: Report, refused: bool) -> ExitCode:
    ends = {host.end for host in report.hosts}
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.unheard:
        return ExitCode.UNREACHABLE
    if FAILED in ends:
        return ExitCode.FAILED
    if WENT_BACK in ends:
        return ExitCode.WENT_BACK
    return ExitCode.FAILED if refused else ExitCode.DONE


def unfinished_hosts(report: Report) -> list[HostReport]:
    return [host for host in report.hosts if host.end != DONE]
