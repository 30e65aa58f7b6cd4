"""Everything that `status` shows of one moment.

The fleet is judged by files and timetables, and the selected part of it is shown.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from vgpuctl.basics.names import natural
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import Card, Host
from vgpuctl.model.orders import Maintenance, Pause
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.pods import Quota, Rollout
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable
from vgpuctl.model.workloads import Workload
from vgpuctl.planning.cards.card_rules import frame_gib
from vgpuctl.planning.departures import on_their_way
from vgpuctl.planning.selection import Selection
from vgpuctl.reporting.deviations import (
    Deviation,
    of_departure,
    of_host,
    of_mark,
    of_missing,
    of_rollout,
    of_unreadable,
    of_worker,
    of_workload,
)
from vgpuctl.reporting.orders import maintenance_in_force, parked, retried
from vgpuctl.reporting.pending_pods import Waiting, waiting
from vgpuctl.reporting.timetable_state import TimetableState, Waking, state_of
from vgpuctl.reporting.verdicts import Hindered, hindered


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedWorker:
    """A worker, and how it stands to its timetable. `awake`: whether it should be awake; None if no timetable says."""

    worker: Worker
    timetable: str | None
    awake: bool | None
    waking: Waking | None


def node_word(judged: JudgedWorker) -> str:
    """Return a node's state in one word, or two."""
    worker, node = judged.worker, judged.worker.node
    if node is None:
        return "none"
    if not worker.on:
        return "asleep" if node.record or judged.awake is False else "down"
    if not node.ready:
        return "not ready"
    return "cordoned" if node.unschedulable else "ready"


class Resting(NamedTuple):
    """A workload that we scaled to zero, and when it gets its size back."""

    workload: Workload
    waking: Waking | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The selected hosts, workers, pods and findings, sorted as people count.

    `pause`, `maintenance`: the orders in force; overrides are in `states`. `parked`: hosts that are not tried again.
    `hindered`: where the shift that is due waits for something, or was skipped.
    `retried`: hosts that failed, and are.
    `quotas`: None if they cannot be seen. `stale`: the servers that are not heard, and since when.
    """

    now: datetime
    fleet: Fleet
    catalogue: Catalogue
    states: tuple[TimetableState, ...]
    hosts: tuple[Host, ...]
    workers: tuple[JudgedWorker, ...]
    missing: tuple[str, ...]
    waiting: tuple[Waiting, ...]
    resting: tuple[Resting, ...]
    findings: tuple[Deviation, ...]
    pause: Pause | None = None
    maintenance: tuple[Maintenance, ...] = ()
    parked: tuple[Outcome, ...] = ()
    hindered: tuple[Hindered, ...] = ()
    retried: tuple[Outcome, ...] = ()
    quotas: tuple[Quota, ...] | None = ()
    stale: Mapping[str, datetime] = field(default_factory=dict)

    def used_mib(self, card: Card) -> int:
        """Return what the running VMs take of the card. Its host may still list VMs there that have stopped.

        If a vGPU's frame is not known, assume it fills the card.
        """
        # vSphere: `graphicsInfo.vm` may lag, so only the VMs that run are counted.
        vgpus = (vgpu for name in card.holds if self._runs(name) for vgpu in self.fleet.vgpus_of(name))
        frames = [frame_gib((card,), vgpu) for vgpu in vgpus]
        return 1024 * sum(frame for frame in frames if frame) if all(frames) else card.frame_mib

    def _runs(self, name: str) -> bool:
        found = self.fleet.workers.get(name) or self.fleet.strangers.get(name)
        return found is None or found.on

    def held_by_waiting(self, quota: Quota) -> int:
        """Return how much of the quota is held by pods that wait for our profiles."""
        # Kubernetes: a Pending pod already counts against `requests.nvidia.com/gpu` of its namespace.
        waiting = (each.pod.demand for each in self.waiting if each.pod.namespace == quota.namespace)
        return sum(demand.gpus for demand in waiting if demand)

    def with_rollouts(self, rollouts: Iterable[Rollout]) -> Situation:
        """Return the situation with the rollouts that sleepers hold up."""
        held = (finding for rollout in rollouts for finding in of_rollout(rollout, self.fleet))
        return replace(self, findings=(*self.findings, *held))

    def with_quotas(self, quotas: Iterable[Quota] | None) -> Situation:
        """Return the situation with the quotas of the namespaces in which pods wait."""
        concerned = {each.pod.namespace for each in self.waiting}
        kept = None if quotas is None else tuple(quota for quota in quotas if quota.namespace in concerned)
        return replace(self, quotas=kept)


def situate(
    fleet: Fleet, catalogue: Catalogue, timetables: Iterable[Timetable], selection: Selection, now: datetime
) -> Situation:
    """Judge the whole fleet, then keep the selected part. Only the whole fleet shows which shift it is in."""
    timetables = tuple(timetables)
    states = tuple(state_of(fleet, timetable, now) for timetable in timetables)
    meant = selection.of(fleet)
    keeping = _keeping(states)
    chosen = [fleet.workers[name] for name in sorted(meant & fleet.workers.keys(), key=natural)]
    missing = tuple(name for name in fleet.missing if name in meant)
    hosts = tuple(_hosts(fleet, chosen, everything=selection.everything))
    ours = {worker.host for worker in chosen}
    findings = [
        *of_missing(missing),
        *(of_unreadable(fleet.unreadable) if selection.everything else ()),
        *(finding for host in hosts if host.name in ours for finding in of_host(host)),
        *(of_departure(left) for left in on_their_way(fleet, timetables) if left.host in ours),
        *(
            finding
            for worker in chosen
            for finding in of_worker(fleet, worker, catalogue, keeping.get(worker.name, ()))
        ),
    ]
    resting = list(_resting(fleet, states)) if selection.everything else []
    for workload in fleet.workloads.values() if selection.everything else ():
        findings += of_mark(workload)
    for workload, keeper in resting:
        findings += of_workload(workload, keeper)
    profiles = {worker.profile for worker in chosen}
    return Situation(
        now=now,
        fleet=fleet,
        catalogue=catalogue,
        states=states,
        hosts=hosts,
        workers=tuple(_judged(worker, keeping.get(worker.name, ())) for worker in chosen),
        missing=missing,
        waiting=tuple(
            each
            for each in waiting(fleet, catalogue, states)
            if selection.everything or not profiles.isdisjoint(each.profiles)
        ),
        resting=tuple(Resting(workload, keeper.waking_of(workload)) for workload, keeper in resting),
        findings=tuple(findings),
        pause=fleet.orders.paused(now),
        maintenance=tuple(
            order for order in maintenance_in_force(fleet.orders, now) if selection.everything or order.host in ours
        ),
        hindered=tuple(_hindered(fleet, timetables, {host.name for host in hosts}, now)),
        parked=tuple(each for each in parked(fleet, states) if selection.everything or each.host in ours),
        retried=tuple(each for each in retried(fleet, states) if selection.everything or each.host in ours),
    )


def _hindered(
    fleet: Fleet, timetables: Iterable[Timetable], hosts: Container[str], now: datetime
) -> Iterator[Hindered]:
    found = (hindered(fleet, timetable, now, hosts) for timetable in timetables)
    return (each for each in found if each is not None)


def _resting(fleet: Fleet, states: Iterable[TimetableState]) -> Iterator[tuple[Workload, TimetableState]]:
    by_name = {each.timetable.name: each for each in states}
    for workload in fleet.workloads.values():
        if workload.scaled is not None and workload.sleeps and workload.scaled.timetable in by_name:
            yield workload, by_name[workload.scaled.timetable]


def _keeping(states: Iterable[TimetableState]) -> dict[str, tuple[TimetableState, ...]]:
    """Return, for each worker, the timetables that decide about it."""
    found: dict[str, tuple[TimetableState, ...]] = {}
    for each in states:
        for worker in each.workers:
            found[worker.name] = (*found.get(worker.name, ()), each)
    return found


def _hosts(fleet: Fleet, chosen: Iterable[Worker], *, everything: bool) -> list[Host]:
    """Return the hosts of these workers. With `everything`, add all hosts that have cards."""
    names = {worker.host for worker in chosen}
    if everything:
        names |= {host.name for host in fleet.hosts.values() if host.cards or host.unshared}
    return [fleet.hosts[name] for name in sorted(names & fleet.hosts.keys(), key=natural)]


def _judged(worker: Worker, states: tuple[TimetableState, ...]) -> JudgedWorker:
    if len(states) != 1:
        return JudgedWorker(worker=worker, timetable=None, awake=None, waking=None)
    mine = states[0]
    return JudgedWorker(
        worker=worker,
        timetable=mine.timetable.name,
        awake=mine.should_be_awake(worker),
        waking=mine.waking(worker),
    )
