"""How each host's part of a goal ended, and where workers stand that have not arrived."""

from __future__ import annotations

from collections.abc import Container

from vgpuctl.engine.run_state import EVERYWHERE, RunState
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.journal import DONE, FAILED, INTERRUPTED, NOT_BEGUN, WENT_BACK, HostReport
from vgpuctl.model.names import fold
from vgpuctl.model.plan import Plan
from vgpuctl.model.record import ASLEEP
from vgpuctl.model.wish import Wish
from vgpuctl.planning.wishes import BACK_FROM


def ends(wish: Wish, fleet: Fleet, memory: RunState, left: Plan) -> tuple[HostReport, ...]:
    """Return the end of every host that the wish is about, and of workloads that gave up.

    `left`: the steps that were not done when the run ended.
    """
    by_host: dict[str, list[Worker]] = {}
    for worker in fleet.workers.values():
        if worker.name in wish.workers:
            by_host.setdefault(worker.host, []).append(worker)
    found = [_end(wish, workers, memory, left) for workers in by_host.values()]
    if EVERYWHERE in memory.gave_up:
        found.append(HostReport(host="workloads", end=FAILED, why=memory.gave_up[EVERYWHERE]))
    return tuple(found)


def _end(wish: Wish, workers: list[Worker], memory: RunState, left: Plan) -> HostReport:
    host = workers[0].host
    if host in memory.gave_up:
        tried = memory.going_back.get(host)
        why = memory.gave_up[host] if tried is None else f"{tried} Going back failed too: {memory.gave_up[host]}"
        return HostReport(host=host, end=FAILED, why=why)
    if host in memory.held_back:
        return HostReport(host=host, end=NOT_BEGUN, why=memory.held_back[host])
    if standing := _standing({worker.name for worker in workers}, left):
        asked = memory.begun()
        begun = host in memory.going_back or any(has_begun(worker, wish, asked) for worker in workers)
        return HostReport(host=host, end=INTERRUPTED if begun else NOT_BEGUN, why=standing if begun else "")
    if host in memory.going_back:
        return HostReport(host=host, end=WENT_BACK, why=memory.going_back[host])
    return HostReport(host=host, end=DONE)


def has_begun(worker: Worker, wish: Wish, asked: Container[str]) -> bool:
    """True if something was asked for the worker (`asked`: by this run), or its host was on its way before this run.

    Only a departure that was recorded before has a time. A sleeper's mark from another shift is no sign.
    """
    departure = wish.departures.get(worker.host)
    if worker.name in asked or (departure is not None and departure.since):
        return True
    record = worker.node.record if worker.node else None
    return record is not None and (record.state != ASLEEP or record.wish.removeprefix(BACK_FROM) == wish.name)


def _standing(names: set[str], left: Plan) -> str:
    """Return where each worker stands that has not arrived: `worker-[2-4] before cordon, worker-1 before resume`."""
    before: dict[str, list[str]] = {}
    for worker, step in left.next_steps().items():
        if worker in names:
            before.setdefault(step.brief(), []).append(worker)
    return ", ".join(f"{' '.join(fold(behind))} before {what}" for what, behind in before.items())
