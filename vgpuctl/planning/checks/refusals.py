"""Finds wishes that cannot end well before anything is touched, and says the way out of each."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import stops, vgpus_wished
from vgpuctl.planning.checks.admission import against_admission
from vgpuctl.planning.checks.card_room import against_room
from vgpuctl.planning.checks.datastore_space import against_space
from vgpuctl.planning.checks.devices import against_devices, against_types
from vgpuctl.planning.checks.maintenance import against_maintenance
from vgpuctl.planning.checks.pods import against_budgets, against_drain, against_scaling
from vgpuctl.planning.checks.swaps import against_swaps
from vgpuctl.planning.checks.workers import Case, Obstacle, obstacles
from vgpuctl.planning.planner import awake_before, ladder


def refusals(fleet: Fleet, wish: Wish) -> tuple[Refusal, ...]:
    """Return all reasons against the wish. Budgets come last: workers that stay after refusals are places for pods."""
    hosts = _hosts(fleet, wish)
    found = [found for host in hosts for found in _against(fleet, wish, host)]
    against = {refusal.host for refusal in found}
    # Hosts share datastores and clusters, so a refused host takes no room there from the others.
    found += against_space(fleet, wish, [host for host in hosts if host not in against])
    against = {refusal.host for refusal in found}
    found += against_admission(fleet, wish, [host for host in hosts if host not in against])
    against = {refusal.host for refusal in found}
    left = wish.only(name for name in wish.workers if fleet.host_of(name) not in against)
    return (*found, *against_budgets(fleet, left))


def _hosts(fleet: Fleet, wish: Wish) -> list[str]:
    return list(dict.fromkeys(fleet.workers[name].host for name in wish.workers if name in fleet.workers))


def _against(fleet: Fleet, wish: Wish, host: str) -> Iterator[Refusal]:
    workers = [w for w in fleet.on_host(host) if w.name in wish.workers]
    yield from against_maintenance(fleet, wish, host, workers)
    for worker in workers:
        yield from _against_worker(fleet, wish, worker)
        yield from against_devices(wish, worker)
        if stops(wish, worker):
            yield from against_drain(fleet, wish, worker)
    yield from against_scaling(fleet, wish, [worker for worker in workers if stops(wish, worker)])
    if host in fleet.hosts:
        yield from against_types(wish, fleet.hosts[host], workers)
        yield from against_room(fleet, wish, fleet.hosts[host], workers)
        yield from against_swaps(fleet, wish, host, workers)


def _against_worker(fleet: Fleet, wish: Wish, worker: Worker) -> Iterator[Obstacle]:
    """Yield the obstacles that stand in the way of this worker's steps.

    Few workers have an obstacle at all, and the steps of those alone are worked out.
    """
    case = Case(worker, fleet.hosts.get(worker.host), vgpus_wished(wish, worker), wish.include_held)
    if found := list(obstacles(case)):
        steps = ladder(fleet, wish, worker, awake_before(fleet, wish, worker.host))
        yield from (obstacle for obstacle in found if obstacle.hinders(steps))
