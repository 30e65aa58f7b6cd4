"""Release before acquire: the planner joins each worker's missing rungs host by host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from vgpuctl.basics.memo import Memo
from vgpuctl.model.conduct import Asleep
from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wish import Wish, WorkerWish
from vgpuctl.planning.cards.releases import begun, changes_devices, releases
from vgpuctl.planning.labels import labels_of, taken_off
from vgpuctl.planning.pods.drain import within_s
from vgpuctl.planning.scaling import join
from vgpuctl.planning.steps import (
    Attach,
    Cordon,
    Discard,
    Drain,
    DrainFirst,
    Label,
    MarkAsleep,
    PowerOn,
    Shield,
    ShutDown,
    Suspend,
    Uncordon,
    Unshield,
    WaitBack,
    WaitDetached,
)
from vgpuctl.planning.steps.step import WorkerStep
from vgpuctl.planning.waves import Ladders, in_order, in_waves, units

#: What a node's labels should say.
LabelChanges = tuple[tuple[str, str | None], ...]


class HostPlan(NamedTuple):
    """One host's ladders, and the steps that each rung needs first."""

    ladders: Mapping[str, list[Step]]
    needs: Mapping[StepId, frozenset[StepId]]


class LadderMemo:
    """Remembers each host's part of the last plan for a wish, with its ladders and the stops that each start needs.

    A part is reused as long as nothing that it was made of has changed.
    """

    def __init__(self) -> None:
        self._wish: Wish | None = None
        self._parts: Memo[HostPlan] = Memo()
        self._ladders: Memo[list[Step]] = Memo()
        self._releases: Memo[dict[str, frozenset[StepId]]] = Memo()

    def part(self, fleet: Fleet, wish: Wish, host: str, names: list[str]) -> HostPlan:
        # Decision 0001: the plan of a host depends on nothing outside it, so only changed hosts are planned anew.
        made_of = (names, fleet.on_host(host), fleet.hosts.get(host), fleet.strangers_on(host))
        return self._parts.of(host, made_of, lambda: plan_of_host(fleet, wish, host, names, self))

    def begin(self, wish: Wish) -> None:
        if self._wish != wish:
            self._parts.clear()
            self._ladders.clear()
            self._releases.clear()
        self._wish = wish

    def ladder(self, fleet: Fleet, wish: Wish, worker: Worker, former: tuple[str, ...]) -> list[Step]:
        mine = wish.workers[worker.name]
        labels = _labels(fleet, wish, worker, mine) if mine.awake or mine.label else ()
        made_of = (worker, former, labels)
        return self._ladders.of(worker.name, made_of, lambda: _missing(_rungs(wish, *made_of), worker))

    def releases(self, fleet: Fleet, host: str, ladders: Ladders) -> dict[str, frozenset[StepId]]:
        every = (step for rungs in ladders.values() for step in rungs)
        moves = tuple(step for step in every if isinstance(step, PowerOn | Suspend | ShutDown | Attach))
        there = tuple((each.name, each.on, each.vgpus, begun(each)) for each in fleet.on_host(host))
        made_of = (moves, there, fleet.hosts.get(host), fleet.strangers_on(host))
        return self._releases.of(host, made_of, lambda: releases(fleet, host, ladders))


def plan(fleet: Fleet, wish: Wish, memo: LadderMemo | None = None) -> Plan:
    """Return the steps that are still missing between the fleet and the wish."""
    ladders: dict[str, list[Step]] = {}
    needs: dict[StepId, frozenset[StepId]] = {}
    memo = memo or LadderMemo()
    memo.begin(wish)
    for host, names in _by_host(fleet, wish).items():
        part = memo.part(fleet, wish, host, names)
        ladders |= part.ladders
        needs |= part.needs
    if wish.prune:
        ladders |= _pruned(fleet, wish, needs)
    waves = units(fleet, ladders, needs) if wish.max_unavailable else []
    if wish.max_unavailable:
        in_waves(waves, ladders, needs, wish.max_unavailable)
    steps = tuple(in_order(waves, ladders))
    if wish.drain_first:
        _first_pods_before_the_others(fleet, steps, needs)
    _all_cordons_before_any_drain(steps, needs)
    return Plan(join(fleet, wish, steps, needs), needs)


def _pruned(fleet: Fleet, wish: Wish, needs: dict[StepId, frozenset[StepId]]) -> dict[str, list[Step]]:
    steps = (Label(name, tuple(taken_off(wish.catalogue).items())) for name in fleet.strays)
    found: dict[str, list[Step]] = {step.worker: [step] for step in steps if not step.done_in(fleet)}
    needs |= {rungs[0].id: frozenset() for rungs in found.values()}
    return found


def plan_of_host(fleet: Fleet, wish: Wish, host: str, names: Iterable[str], memo: LadderMemo | None = None) -> HostPlan:
    needs: dict[StepId, frozenset[StepId]] = {}
    memo, former = memo or LadderMemo(), awake_before(fleet, wish, host)
    ladders = {name: memo.ladder(fleet, wish, fleet.worker(name), former) for name in names}
    for rungs in ladders.values():
        _chained(rungs, needs)
    # harvester#8478: the new VM was started before the old one had freed the card. Release before acquire.
    for waker, stops in memo.releases(fleet, host, ladders).items():
        needs[PowerOn.of(waker)] |= stops
    return HostPlan(ladders, needs)


def _all_cordons_before_any_drain(steps: Iterable[Step], needs: dict[StepId, frozenset[StepId]]) -> None:
    """Make each drain wait for all cordons of its wave.

    Otherwise a pod that leaves one worker could land on another that is about to leave, and would be evicted again. A
    later wave's cordons come with that wave.
    """
    cordons = frozenset(step.id for step in steps if isinstance(step, Cordon) and not needs[step.id])
    for step in steps:
        if isinstance(step, Drain) and needs[step.id] <= cordons:
            needs[step.id] = cordons


def _first_pods_before_the_others(fleet: Fleet, steps: Iterable[Step], needs: dict[StepId, frozenset[StepId]]) -> None:
    """Make each drain wait until the pods that the last try failed on have left its host.

    Pods of a later wave come with that wave: its workers wait for these drains.
    """
    first: dict[str, frozenset[StepId]] = {}
    for step in steps:
        if isinstance(step, DrainFirst) and not any(needs[below] for below in needs[step.id]):
            host = fleet.host_of(step.subject)
            first[host] = first.get(host, frozenset()) | {step.id}
    for step in steps:
        if isinstance(step, Drain) and not isinstance(step, DrainFirst):
            needs[step.id] |= first.get(fleet.host_of(step.subject), frozenset())


def _by_host(fleet: Fleet, wish: Wish) -> dict[str, list[str]]:
    hosts: dict[str, list[str]] = {}
    for name in wish.workers:
        if name in fleet.workers:
            hosts.setdefault(fleet.workers[name].host, []).append(name)
    return hosts


def _chained(rungs: list[Step], needs: dict[StepId, frozenset[StepId]]) -> None:
    below: frozenset[StepId] = frozenset()
    for step in rungs:
        needs[step.id] = below
        below = frozenset((step.id,))


def ladder(fleet: Fleet, wish: Wish, worker: Worker, former: tuple[str, ...]) -> list[Step]:
    """Return one worker's missing rungs; each needs the one before.

    `former`: the workers that were awake on its host when the wish was made.
    """
    return LadderMemo().ladder(fleet, wish, worker, former)


def would_move(fleet: Fleet, wish: Wish, worker: Worker) -> bool:
    """True if the wish has a step for this worker. A label alone moves nothing."""
    steps = ladder(fleet, wish, worker, awake_before(fleet, wish, worker.host))
    return any(not isinstance(step, Label) for step in steps)


def _missing(rungs: Iterable[WorkerStep], worker: Worker) -> list[Step]:
    """Return the rungs without the ones that would find nothing to do."""
    # Decision 0001: each missing rung is imagined as done before the next one is asked, from any starting point.
    missing: list[Step] = []
    then, last = worker, None
    for step in rungs:
        if last:
            then, last = last.applied(then), None
        if not step.is_done(then):
            missing.append(step)
            last = step
    return missing


def _rungs(wish: Wish, worker: Worker, former: tuple[str, ...], labels: LabelChanges) -> Iterator[WorkerStep]:
    name, mine = worker.name, wish.workers[worker.name]
    wrong = changes_devices(wish, worker)
    if worker.on and (mine.awake is False or wrong):
        yield Cordon(name, wish.name, former, mine.before if mine.change else None)
        drain = wish.drain, within_s(worker, wish.drain), wish.conduct.on_stuck
        if wish.drain_first and worker.node and any(pod.uid in wish.drain_first for pod in worker.node.pods):
            yield DrainFirst(name, *drain, wish.drain_first)
        yield Drain(name, *drain)
        # Kubernetes: a suspended VM keeps its disks, and blocks them for all other nodes.
        yield WaitDetached(name)
        # Decision 0014: the shield comes only now, so that a health check can work during the drain.
        yield Shield(name)
        # vSphere: devices change only while the VM is powered off, and suspended is not off.
        off = wrong or wish.conduct.asleep is Asleep.OFF
        yield ShutDown(name, wish.conduct.power_off_after_s, wish.drain) if off else Suspend(name, wish.drain)
    elif mine.awake is False:
        # Cluster API: a VM that is off already has a silent node, too.
        yield Shield(name)
    if wrong and mine.vgpus is not None:
        yield Attach(name, mine.vgpus)
    # Decision 0003: a worker that is to wake is marked first, even if it slept since before us.
    if mine.awake is not None:
        yield MarkAsleep(name, wish.name, former, mine.sleep)
    # vSphere: a suspended state may not resume, for example after a host upgrade. Then the VM boots cold.
    if mine.cold and mine.awake is not False and worker.power is Power.SUSPENDED:
        yield Discard(name, wish.drain, mine.given_up)
    if mine.awake:
        yield PowerOn(name, resume=worker.power is Power.SUSPENDED and not mine.cold)
        # Kubernetes: a node may be Ready from before its sleep, so it is uncordoned only once it is truly back.
        yield WaitBack(name)
        yield Uncordon(name, labels)
        yield Unshield(name)
    if mine.label:
        yield Label(name, labels)


def awake_before(fleet: Fleet, wish: Wish, host: str) -> tuple[str, ...]:
    """Return the workers that were awake on this host when the wish was made."""
    return tuple(sorted(worker.name for worker in fleet.on_host(host) if worker.name in wish.awake_before))


def _labels(fleet: Fleet, wish: Wish, worker: Worker, mine: WorkerWish) -> LabelChanges:
    """Return the labels for what the VM carries, or will carry once it has been changed."""
    carries = mine.vgpus if mine.change and mine.vgpus is not None else worker.vgpus
    return tuple(labels_of(fleet, wish.catalogue, worker, carries).items())
