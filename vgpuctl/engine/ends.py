"""How each host's part of a goal ended, and where those stand that have not arrived."""

from __future__ import annotations

from collections.abc import Iterable

from vgpuctl.engine.memory import EVERYWHERE, Memory
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.journal import DONE, FAILED, INTERRUPTED, NOT_BEGUN, WENT_BACK, HostReport
from vgpuctl.model.names import fold
from vgpuctl.model.plan import Plan
from vgpuctl.model.wish import Wish


def ends(wish: Wish, fleet: Fleet, memory: Memory, left: Plan) -> tuple[HostReport, ...]:
    """Of every host that the wish is about, and of workloads that gave up. `left`: what was not done when it ended."""
    by_host: dict[str, list[Worker]] = {}
    for worker in fleet.workers.values():
        if worker.name in wish.workers:
            by_host.setdefault(worker.host, []).append(worker)
    found = [_end(host, workers, memory, left, host in wish.departures) for host, workers in by_host.items()]
    if EVERYWHERE in memory.gave_up:
        found.append(HostReport(host="workloads", end=FAILED, why=memory.gave_up[EVERYWHERE]))
    return tuple(found)


def _end(host: str, workers: list[Worker], memory: Memory, left: Plan, away: bool) -> HostReport:
    if host in memory.gave_up:
        tried = memory.going_back.get(host)
        why = memory.gave_up[host] if tried is None else f"{tried} Going back failed too: {memory.gave_up[host]}"
        return HostReport(host=host, end=FAILED, why=why)
    if host in memory.held_back:
        return HostReport(host=host, end=NOT_BEGUN, why=memory.held_back[host])
    if standing := _standing({worker.name for worker in workers}, left):
        begun = away or _begun(workers, memory)
        return HostReport(host=host, end=INTERRUPTED if begun else NOT_BEGUN, why=standing if begun else "")
    if host in memory.going_back:
        return HostReport(host=host, end=WENT_BACK, why=memory.going_back[host])
    return HostReport(host=host, end=DONE)


def _begun(workers: Iterable[Worker], memory: Memory) -> bool:
    """By us, or by one who was interrupted before."""
    asked = memory.begun()
    return any(worker.name in asked or (worker.node and worker.node.record) for worker in workers)


def _standing(names: set[str], left: Plan) -> str:
    """`worker-[2-4] before cordon, worker-1 before resume`: where each of them stands that has not arrived."""
    before: dict[str, list[str]] = {}
    for worker, step in left.next_steps().items():
        if worker in names:
            what = "label" if step.name.startswith("Label/") else step.describe()
            before.setdefault(what, []).append(worker)
    return ", ".join(f"{' '.join(fold(behind))} before {what}" for what, behind in before.items())
