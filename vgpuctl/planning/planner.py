"""Release before acquire: each worker's missing rungs, joined host by host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.wish import Wish, WorkerWish
from vgpuctl.planning.releases import releases
from vgpuctl.planning.steps import (
    Attach,
    Cordon,
    Drain,
    Label,
    MarkAsleep,
    PowerOn,
    ShutDown,
    Suspend,
    Uncordon,
    WaitBack,
    equipped,
)


def plan(fleet: Fleet, wish: Wish) -> Plan:
    """The steps that are still missing between the fleet and the wish."""
    steps: list[Step] = []
    needs: dict[str, frozenset[str]] = {}
    for host, names in _by_host(fleet, wish).items():
        ladders = {name: ladder(fleet, wish, fleet.workers[name]) for name in names}
        for rungs in ladders.values():
            _climb(rungs, needs)
        for waker, stops in releases(fleet, host, ladders).items():
            needs[f"PowerOn/{waker}"] |= stops
        steps += _from_the_top(ladders.values())
    _all_cordons_before_any_drain(steps, needs)
    return Plan(tuple(sorted(steps, key=lambda step: not isinstance(step, Cordon))), needs)


def _all_cordons_before_any_drain(steps: list[Step], needs: dict[str, frozenset[str]]) -> None:
    """Else a pod that leaves one worker could land on another that is about to leave, and would be evicted again."""
    cordons = frozenset(step.name for step in steps if isinstance(step, Cordon))
    for step in steps:
        if isinstance(step, Drain):
            needs[step.name] = cordons


def _by_host(fleet: Fleet, wish: Wish) -> dict[str, list[str]]:
    hosts: dict[str, list[str]] = {}
    for name in wish.workers:
        if name in fleet.workers:
            hosts.setdefault(fleet.workers[name].host, []).append(name)
    return hosts


def _climb(rungs: list[Step], needs: dict[str, frozenset[str]]) -> None:
    below: frozenset[str] = frozenset()
    for step in rungs:
        needs[step.name] = below
        below = frozenset({step.name})


def _from_the_top(ladders: Iterable[list[Step]]) -> list[Step]:
    """An order in which the steps may be done one by one: all that leads up to a power-on, then the rest."""
    first: list[Step] = []
    second: list[Step] = []
    for rungs in ladders:
        start = next((i for i, step in enumerate(rungs) if isinstance(step, PowerOn)), len(rungs))
        first += rungs[:start]
        second += rungs[start:]
    return first + second


def ladder(fleet: Fleet, wish: Wish, worker: Worker) -> list[Step]:
    """One worker's missing rungs, each needing the one before: all rungs, less those that would find nothing to do."""
    missing: list[Step] = []
    alone = replace(fleet, workers={worker.name: worker})
    for step in _rungs(fleet, wish, worker):
        if not step.done_in(alone):
            missing.append(step)
            alone = step.applied_to(alone)
    return missing


def _rungs(fleet: Fleet, wish: Wish, worker: Worker) -> Iterator[Step]:
    name, mine, key = worker.name, wish.workers[worker.name], wish.catalogue.label
    wrong = mine.change and mine.vgpus is not None and not equipped(worker, mine.vgpus)
    if worker.on and (mine.awake is False or wrong):
        yield Cordon(name, wish.name, _former(fleet, wish, worker))
        yield Drain(name, wish.drain)
        yield ShutDown(name) if wrong else Suspend(name)
    if wrong and mine.vgpus is not None:
        yield Attach(name, mine.vgpus)
    if mine.awake is not None:
        yield MarkAsleep(name, wish.name, _former(fleet, wish, worker))
    if mine.awake:
        yield PowerOn(name, resume=worker.power is Power.SUSPENDED)
        yield WaitBack(name)
        yield Uncordon(name, key, _label_value(wish, worker, mine))
    if mine.label:
        yield Label(name, key, _label_value(wish, worker, mine))


def _former(fleet: Fleet, wish: Wish, worker: Worker) -> tuple[str, ...]:
    """Who was awake on this worker's host when the wish was made."""
    return tuple(sorted(w.name for w in fleet.on_host(worker.host) if w.name in wish.awake_before))


def _label_value(wish: Wish, worker: Worker, mine: WorkerWish) -> str | None:
    """Labels tell what the VM carries, or will carry once it has been changed."""
    carries = mine.vgpus if mine.change and mine.vgpus is not None else worker.vgpus
    return wish.catalogue.carried(carries)
