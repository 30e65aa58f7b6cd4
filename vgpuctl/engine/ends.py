"""How each host's part of a goal ended, and where workers stand that have not arrived."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from vgpuctl.engine.run_state import EVERYWHERE, RunState
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.journal import DONE, FAILED, INTERRUPTED, NOT_BEGUN, WENT_BACK, HostReport
from vgpuctl.model.plan import Plan
from vgpuctl.model.record import ASLEEP
from vgpuctl.model.wish import Wish
from vgpuctl.planning.signs import at_rest
from vgpuctl.planning.wishes import BACK_FROM
from vgpuctl.reporting.causes import Cause, Stopped, WayBackFailed


def ends(wish: Wish, fleet: Fleet, state: RunState, left: Plan) -> tuple[HostReport, ...]:
    """Return the end of every host that the wish is about, and of workloads that gave up.

    `left`: the steps that were not done when the run ended.
    """
    by_host: dict[str, list[Worker]] = {}
    for worker in fleet.workers.values():
        if worker.name in wish.workers:
            by_host.setdefault(worker.host, []).append(worker)
    found = [_with_signs(_end(wish, workers, state, left), fleet, state) for workers in by_host.values()]
    if EVERYWHERE in state.gave_up:
        found.append(_report("workloads", FAILED, state.gave_up[EVERYWHERE]))
    return tuple(found)


def _with_signs(report: HostReport, fleet: Fleet, state: RunState) -> HostReport:
    # A host that begins anew in the same run has neither gone back nor given up yet.
    failed = any(report.host in hosts for hosts in (state.going_back, state.gave_up, state.held_back))
    signs = state.failed_on.get(report.host, {}) if failed and report.end != INTERRUPTED else {}
    return replace(report, failed_on=at_rest(fleet, signs)) if signs else report


def _end(wish: Wish, workers: list[Worker], state: RunState, left: Plan) -> HostReport:
    host = workers[0].host
    if host in state.gave_up:
        first, last = state.going_back.get(host), state.gave_up[host]
        return _report(host, FAILED, last if first is None else WayBackFailed(first, last))
    if host in state.held_back:
        return _report(host, NOT_BEGUN, state.held_back[host])
    if before := _next_steps({worker.name for worker in workers}, left):
        asked = state.begun()
        begun = host in state.going_back or any(has_begun(worker, wish, asked) for worker in workers)
        return _report(host, INTERRUPTED, Stopped(before)) if begun else HostReport(host=host, end=NOT_BEGUN)
    if host in state.going_back:
        return _report(host, WENT_BACK, state.going_back[host])
    return HostReport(host=host, end=DONE)


def _report(host: str, end: str, cause: Cause) -> HostReport:
    return HostReport(host=host, end=end, why=str(cause), code=cause.code)


def has_begun(worker: Worker, wish: Wish, asked: Container[str]) -> bool:
    """True if something was asked for the worker (`asked`: by this run), or its host was on its way before this run.

    Only a departure that was recorded before has a time. A sleeper's mark from another shift is no sign.
    """
    departure = wish.departures.get(worker.host)
    if worker.name in asked or (departure is not None and departure.since):
        return True
    record = worker.node.record if worker.node else None
    # A worker that sleeps bears our record all the time, from the shift that put it to sleep (decision 0003).
    return record is not None and (record.state != ASLEEP or record.wish.removeprefix(BACK_FROM) == wish.name)


def _next_steps(names: set[str], left: Plan) -> dict[str, tuple[str, ...]]:
    """Return the workers that have not arrived, by the next step of each."""
    before: dict[str, tuple[str, ...]] = {}
    for worker, step in left.next_steps().items():
        if worker in names:
            before[step.brief()] = (*before.get(step.brief(), ()), worker)
    return before
