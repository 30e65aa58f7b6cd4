"""Finds wishes that cannot end well before anything is touched, and says the way out of each."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.conduct import OnStuck
from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.plan import Refusal, Step
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import stops
from vgpuctl.planning.checks.admission import against_admission
from vgpuctl.planning.checks.card_room import against_room, against_types
from vgpuctl.planning.checks.datastore_space import against_space
from vgpuctl.planning.checks.workers import unfit
from vgpuctl.planning.planner import awake_before, climb, ladder
from vgpuctl.planning.pods.budgets import dead_ends
from vgpuctl.planning.pods.drain import leaving_pods, objection, rivals
from vgpuctl.planning.scaling import against_deciders
from vgpuctl.planning.steps import equipped
from vgpuctl.planning.waves import units


def refusals(fleet: Fleet, wish: Wish) -> tuple[Refusal, ...]:
    """Return all reasons against the wish. Budgets come last: workers that stay after refusals are places for pods."""
    hosts = _hosts(fleet, wish)
    found = [found for host in hosts for found in _against(fleet, wish, host)]
    against = {refusal.host for refusal in found}
    found += against_space(fleet, wish, [host for host in hosts if host not in against])
    against = {refusal.host for refusal in found}
    found += against_admission(fleet, wish, [host for host in hosts if host not in against])
    against = {refusal.host for refusal in found}
    left = wish.only(name for name in wish.workers if fleet.host_of(name) not in against)
    return (*found, *_dead_ends(fleet, left))


def _dead_ends(fleet: Fleet, wish: Wish) -> Iterator[Refusal]:
    """Refuse drains that budgets make impossible. If stuck pods are deleted by force, no budget is a dead end."""
    for end in dead_ends(fleet, wish) if wish.conduct.on_stuck is not OnStuck.FORCE else ():
        for host in dict.fromkeys(fleet.host_of(worker) for worker in end.workers) if end.certain else ():
            yield Refusal(
                host,
                end.message,
                details=tuple(str(pod) for pod in end.pods),
                hint="Scale the workload to zero for the shift (scale), change the budget, or set on_stuck: force.",
            )


def _hosts(fleet: Fleet, wish: Wish) -> list[str]:
    return list(dict.fromkeys(fleet.workers[name].host for name in wish.workers if name in fleet.workers))


def _against(fleet: Fleet, wish: Wish, host: str) -> Iterator[Refusal]:
    workers = [w for w in fleet.on_host(host) if w.name in wish.workers]
    for worker in workers:
        yield from unfit(worker, fleet.hosts.get(host), _rungs_of_suspects(fleet, wish, worker))
        yield from _devices(wish, worker)
        if stops(wish, worker):
            yield from _drain(fleet, wish, worker)
    yield from against_deciders(fleet, wish, [worker for worker in workers if stops(wish, worker)])
    if host in fleet.hosts:
        yield from against_types(wish, fleet.hosts[host], workers)
        yield from against_room(fleet, wish, fleet.hosts[host], workers)
        yield from _together(fleet, wish, host, workers)


def _together(fleet: Fleet, wish: Wish, host: str, workers: list[Worker]) -> Iterator[Refusal]:
    """Refuse workers that need each other's cards but may not be out together: none of them would ever come back."""
    if not wish.max_unavailable:
        return
    ladders, needs = climb(fleet, wish, host, [worker.name for worker in workers])
    for unit in units(fleet, ladders, needs):
        if len(unit.workers) > wish.max_unavailable:
            yield Refusal(
                host,
                f"{' '.join(unit.workers)} swap cards, so all {len(unit.workers)} must be out at once.",
                hint=f"Allow it with --max-unavailable {len(unit.workers)}",
            )


def _rungs_of_suspects(fleet: Fleet, wish: Wish, worker: Worker) -> list[Step]:
    """Return the steps for a worker that something may speak against. Checking every worker twice is too slow."""
    host = fleet.hosts.get(worker.host)
    suspect = (
        worker.doubts
        or worker.managed_by
        or worker.question
        or worker.busy_with
        or worker.fixed_devices
        or _bios(worker)
        or (host and (host.maintenance or not host.connected or host.not_suspendable))
    )
    return ladder(fleet, wish, worker, awake_before(fleet, wish, worker.host)) if suspect else []


def _bios(worker: Worker) -> bool:
    return worker.mmio is not None and not worker.mmio.efi


def _wrong(wish: Wish, worker: Worker) -> bool:
    mine = wish.workers[worker.name]
    return mine.vgpus is not None and not equipped(worker, mine.vgpus)


def _devices(wish: Wish, worker: Worker) -> Iterator[Refusal]:
    mine = wish.workers[worker.name]
    if not _wrong(wish, worker):
        return
    wanted = " ".join(mine.vgpus or ())
    if mine.change and worker.power is Power.SUSPENDED:
        yield Refusal(
            worker.host,
            f"{worker.name} is suspended: its vGPU can be changed only while it is powered off.",
            hint="Let it run in its shift, or power it off in vCenter (its suspended state is lost), then run the same "
            "again.",
        )
    if not mine.change and mine.awake:
        has = " ".join(worker.vgpus) or "no vGPU"
        yield Refusal(
            worker.host,
            f"{worker.name} cannot wake: it carries {has}, its profile is {wanted}."
            if sorted(worker.vgpus) != sorted(mine.vgpus or ())
            else f"{worker.name} cannot wake: its memory is not fully reserved, as {wanted} needs.",
            hint="Run: vgpuctl provision",
        )


def _drain(fleet: Fleet, wish: Wish, worker: Worker) -> Iterator[Refusal]:
    if worker.node is None and worker.doubts:
        # Its doubts are reported already, and they leave open which node is its own.
        return
    if worker.node is None:
        yield Refusal(
            worker.host,
            f"{worker.name} runs, but has no Kubernetes node: nobody can see whether pods run on it.",
            hint="Register its node, or shut the VM down yourself.",
        )
        return
    pods = leaving_pods(worker.node, wish.drain)
    found = [why for pod in pods if (why := objection(pod, wish.drain) or rivals(fleet, pod, wish.drain))]
    if found:
        count = f"{len(found)} pod{'s' * (len(found) != 1)}"
        yield Refusal(
            worker.host,
            f"{worker.name} cannot be drained: {count} may not be deleted.",
            details=tuple(found),
            hint="Remove these pods, or allow it in the timetable's drain settings; let one budget cover each pod.",
        )
