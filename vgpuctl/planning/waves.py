"""Waves: at most so many workers are out at once. Workers that need each other's cards go together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Step
from vgpuctl.model.step_id import StepId
from vgpuctl.planning.cards.placement import alike
from vgpuctl.planning.cards.releases import begun, vgpus_at_start
from vgpuctl.planning.steps import Cordon, DrainFirst, PowerOn, ShutDown, Suspend, Uncordon

Ladders = Mapping[str, list[Step]]
Needs = dict[StepId, frozenset[StepId]]


@dataclass(frozen=True, slots=True)
class Unit:
    """Workers that must be out together, because some of them start on cards that others leave.

    `begun`: the ones that are out already.
    """

    workers: tuple[str, ...]
    begun: frozenset[str]


def goes_out(rungs: Iterable[Step]) -> bool:
    """True if pods could use this worker, were it not for our steps."""
    return any(isinstance(step, Cordon | Suspend | ShutDown | Uncordon) for step in rungs)


def units(fleet: Fleet, ladders: Ladders, needs: Mapping[StepId, frozenset[StepId]]) -> list[Unit]:
    """Return the units. Units that have begun come first, so that a repeated plan continues where it was.

    Next come units with pods that the last try failed on.
    """
    leader = {name: name for name, rungs in ladders.items() if goes_out(rungs)}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    # Decision 0009: if only some of these workers were out, they would wait for ever for the others.
    for name, other in _bound(fleet, ladders, needs, leader):
        leader[find(name)] = find(other)
    groups: dict[str, list[str]] = {}
    for name in leader:
        groups.setdefault(find(name), []).append(name)
    out = frozenset(name for name in leader if begun(fleet.worker(name)))
    found = [Unit(tuple(group), out.intersection(group)) for group in groups.values()]
    # Decision 0009: waves are needs of the plan. A unit that has begun bears our record, so a crash loses nothing.
    return sorted(found, key=lambda unit: (not unit.begun, not _drains_first(unit, ladders)))


def _drains_first(unit: Unit, ladders: Ladders) -> bool:
    return any(isinstance(step, DrainFirst) for name in unit.workers for step in ladders[name])


def _bound(
    fleet: Fleet, ladders: Ladders, needs: Mapping[StepId, frozenset[StepId]], going: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of workers that must be out together.

    If the starts are of several types, the first could take the cards that later ones need. Only once all workers are
    gone is the order of starts ours.
    """
    hosts: dict[str, list[str]] = {}
    for name in going:
        hosts.setdefault(fleet.worker(name).host, []).append(name)
    # NVIDIA, same size: the first VM that starts on an empty card fixes its size.
    for names in hosts.values():
        known = set(names)
        for name in names:
            stops = (stop.subject for stop in needs.get(PowerOn.of(name), ()))
            yield from ((name, other) for other in stops if other in known)
        if not alike(vgpus_at_start(fleet, ladders[name], name) for name in names if _starts(ladders[name])):
            yield from ((names[0], other) for other in names[1:])


def _starts(rungs: Iterable[Step]) -> bool:
    return any(isinstance(step, PowerOn) for step in rungs)


def in_waves(found: list[Unit], ladders: Ladders, needs: Needs, at_most: int) -> None:
    """Make each unit wait for the units before it in its lanes. A unit takes as many lanes as it has workers.

    A worker that is out already waits for nothing. It may turn out to need the card of a worker that is not out yet:
    that one still waits for its lane.
    """
    lanes: list[Unit | None] = [None] * at_most
    place = 0
    for unit in found:
        taken = {(place + n) % at_most for n in range(min(len(unit.workers), at_most))}
        place = (place + len(taken)) % at_most
        before = {name for lane in taken if (earlier := lanes[lane]) for name in earlier.workers}
        for lane in taken:
            lanes[lane] = unit
        ends = frozenset(ladders[name][-1].id for name in before)
        for name in unit.workers:
            if name not in unit.begun:
                needs[ladders[name][0].id] |= ends


def in_order(found: list[Unit], ladders: Ladders) -> Iterator[Step]:
    """Yield the steps one by one: first the workers that do not go out, then unit after unit."""
    out = {name for unit in found for name in unit.workers}
    yield from from_the_top(rungs for name, rungs in ladders.items() if name not in out)
    for unit in found:
        yield from from_the_top(ladders[name] for name in unit.workers)


def from_the_top(ladders: Iterable[list[Step]]) -> list[Step]:
    """Return first all cordons and the pods that leave first, then the steps up to the power-ons, then the rest."""
    cordons: list[Step] = []
    first: list[Step] = []
    before: list[Step] = []
    after: list[Step] = []
    for rungs in ladders:
        mine = before
        for step in rungs:
            if isinstance(step, PowerOn):
                mine = after
            (cordons if isinstance(step, Cordon) else first if isinstance(step, DrainFirst) else mine).append(step)
    return [*cordons, *first, *before, *after]
