"""Who must be gone before whom: which stops a start needs, and whether it may be sent now."""

from __future__ import annotations

from collections.abc import Mapping

from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.plan import Step
from vgpuctl.model.wish import Wish
from vgpuctl.planning.placement import loads_without, may_choose, needs_of, safe_to_start, seats
from vgpuctl.planning.steps import Attach, PowerOn, ShutDown, Suspend


def releases(fleet: Fleet, host: str, ladders: Mapping[str, list[Step]]) -> dict[str, frozenset[str]]:
    """For each worker that starts: the steps that must empty its card first. Cards that are soonest free go first."""
    if host not in fleet.hosts:
        return {}
    seated = seats(fleet, fleet.hosts[host])
    every = [step for rungs in ladders.values() for step in rungs]
    stops = {step.worker: step.name for step in every if isinstance(step, Suspend | ShutDown)}
    starts = [step.worker for step in every if isinstance(step, PowerOn)]
    loads = list(loads_without(fleet, fleet.hosts[host], leaving=stops))
    leavers = [frozenset(stops[n] for n, i in seated.items() if i == card and n in stops) for card in range(len(loads))]
    found: dict[str, frozenset[str]] = {}
    for name in starts:
        needed: frozenset[str] = frozenset()
        for vgpu in _vgpus_at_start(fleet, ladders, name):
            choices = may_choose(tuple(loads), vgpu)
            if choices:
                card = min(choices, key=lambda i: (len(leavers[i]), -loads[i].count, i))
                loads[card] = loads[card].with_one(needs_of([vgpu])[0][0])
                needed |= leavers[card]
        found[name] = needed - {stops.get(name, "")}
    return found


def _vgpus_at_start(fleet: Fleet, ladders: Mapping[str, list[Step]], name: str) -> tuple[str, ...]:
    attached = [step.vgpus for step in ladders[name] if isinstance(step, Attach)]
    return attached[-1] if attached else fleet.worker(name).vgpus


def may_start(fleet: Fleet, wish: Wish, worker: Worker, starting: frozenset[str] = frozenset()) -> str:
    """Why this worker may not be powered on now; "" when it may. `starting`: starts that no card shows yet."""
    host = fleet.hosts.get(worker.host)
    if host is None or not worker.vgpus:
        return ""
    neighbours = [w for w in fleet.on_host(host.name) if w.name in wish.workers and w.name != worker.name]
    begun = [w for w in neighbours if w.name in starting and not w.on]
    rest = [v for w in neighbours if wish.workers[w.name].awake and not w.on and w not in begun for v in w.vgpus]
    if begun and len(needs_of([*worker.vgpus, *rest, *(v for w in begun for v in w.vgpus)])) > 1:
        return "waits until the last start shows its card"
    for other in begun:
        fleet = fleet.with_worker(other.name, power=Power.ON)
    now = loads_without(fleet, host)
    later = loads_without(fleet, host, [w.name for w in neighbours if wish.workers[w.name].awake is False])
    if all(safe_to_start(now, later, vgpu, needs_of(rest)) for vgpu in worker.vgpus):
        return ""
    return "waits for the card"
