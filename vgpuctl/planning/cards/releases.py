"""Which stops a start needs first, and whether the start may be sent now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.plan import Step
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.placement import Loads, Vgpus, fits, may_choose, needs_of, safe_to_start, seated
from vgpuctl.planning.cards.seating import likely, occupants, possible_seatings
from vgpuctl.planning.steps import Attach, PowerOn, ShutDown, Suspend, equipped


def releases(fleet: Fleet, host: str, ladders: Mapping[str, list[Step]]) -> dict[str, frozenset[StepId]]:
    """Return, for each worker that starts, the steps that must empty its cards first.

    Cards that are free soonest go first.
    """
    every = [step for rungs in ladders.values() for step in rungs]
    starts = [step.worker for step in every if isinstance(step, PowerOn)]
    # A wave that has begun keeps its cards: workers with a record of ours come first (decision 0009).
    starts.sort(key=lambda name: not begun(fleet.worker(name)))
    if host not in fleet.hosts or not starts:
        return {}
    # vSphere: a VM that is off or suspended (inferred) has freed its frame, so a start needs these stops.
    stops = {step.worker: step.id for step in every if isinstance(step, Suspend | ShutDown)}
    seating = likely(fleet.hosts[host], occupants(fleet, fleet.hosts[host], leaving=stops))
    on_card: list[set[str]] = [set() for _ in seating.loads]
    for name in stops.keys() & seating.cards_of.keys():
        for card in seating.cards_of[name]:
            on_card[card].add(name)
    leavers = [_leavers(fleet, stops, frozenset(names)) for names in on_card]
    return dict(_cards_for(fleet, ladders, starts, seating.loads, leavers))


class Leavers(NamedTuple):
    """The workers that leave one card: the steps that stop them, their names, and how many of them have begun."""

    stops: frozenset[StepId]
    names: frozenset[str]
    begun: int

    def cost(self, waker: Worker) -> tuple[bool, int, int]:
        """Return what it costs a start to wait for these workers; the smallest cost wins.

        It is least if the starting worker leaves this card itself. Next counts how many leavers are of another wave:
        the ones that have not begun if this worker has, else the ones that have. Last counts how many leavers there
        are.
        """
        others = len(self.names) - self.begun if begun(waker) else self.begun
        return waker.name not in self.names, others, len(self.names)


def _leavers(fleet: Fleet, stops: Mapping[str, StepId], names: frozenset[str]) -> Leavers:
    return Leavers(frozenset(stops[name] for name in names), names, sum(begun(fleet.worker(name)) for name in names))


def _cards_for(
    fleet: Fleet, ladders: Mapping[str, list[Step]], starts: list[str], loads: Loads, leavers: list[Leavers]
) -> Iterable[tuple[str, frozenset[StepId]]]:
    for name in starts:
        waker, needed = fleet.worker(name), set[StepId]()
        wanted = vgpus_at_start(fleet, ladders[name], name)
        if waker.on and sorted(wanted) == sorted(waker.vgpus):
            # The worker comes back onto the same place that it leaves.
            wanted = ()
        for vgpu in wanted:
            card, free = _card_for(loads, vgpu, [each.cost(waker) for each in leavers])
            if card is not None:
                loads = seated(loads, card, vgpu)
                needed |= set() if free else leavers[card].stops
        yield name, frozenset(step for step in needed if step.subject != name)


def begun(worker: Worker) -> bool:
    """True if a first write has been made on the worker's node."""
    return worker.node is not None and worker.node.record is not None


def _card_for(loads: Loads, vgpu: str, costs: list[tuple[bool, int, int]]) -> tuple[int | None, bool]:
    """Return a card for this vGPU, and whether that card has room already.

    Of the cards with room, take the fullest; if none has room, take the card that costs least to wait for.
    """
    # A start that finds room now is tied to no other worker's stop (decision 0009).
    if choices := may_choose(loads, vgpu):
        return max(choices, key=lambda i: len(loads[i].held)), True
    later = may_choose(tuple(load.later() for load in loads), vgpu)
    return min(later, key=lambda i: (costs[i], -len(loads[i].held), i), default=None), False


def vgpus_at_start(fleet: Fleet, rungs: Iterable[Step], name: str) -> Vgpus:
    attached = [step.vgpus for step in rungs if isinstance(step, Attach)]
    return attached[-1] if attached else fleet.worker(name).vgpus


def may_start(fleet: Fleet, wish: Wish, worker: Worker, starting: frozenset[str] = frozenset()) -> Wait | None:
    """Return why this worker may not be powered on now; None if it may. `starting`: starts that no card shows yet."""
    host = fleet.hosts.get(worker.host)
    if host is None or not worker.vgpus:
        return None
    # vSphere: vCenter chooses the card. A start is sent only if every choice leaves room for the rest.
    others = [w for w in fleet.on_host(host.name) if w.name != worker.name]
    ours = [w for w in others if w.name in wish.workers]
    leaving = {w.name for w in ours if stops(wish, w)}
    rest = [w for w in ours if wish.workers[w.name].awake and (w.name in leaving or not w.on)]
    needs = needs_of(vgpus_wished(wish, w) for w in rest if w.name not in starting)
    begun = [vgpu for w in others if w.name in starting and not w.on for vgpu in w.vgpus]
    now = possible_seatings(host, occupants(fleet, host, leaving), [worker.vgpus, *needs, tuple(begun)])
    together = (*worker.vgpus, *begun)
    if now.complete and all(safe_to_start(loads, together, needs) for loads in now.ways):
        return None
    if (now.exact and not begun) or not any(fits(loads, needs_of([together])) for loads in now.ways):
        return Wait(Reason.CARD)
    # vSphere: `graphicsInfo` may lag behind a power-on; once it shows the last start's card, this start may be safe.
    return Wait(Reason.LAST_START)


def stops(wish: Wish, worker: Worker) -> bool:
    """True if this worker runs and will be stopped: to sleep, or to have its devices changed."""
    # vSphere: the vGPU of a VM is changed only while the VM is powered off, so wrong devices mean a stop.
    return worker.on and (wish.workers[worker.name].awake is False or changes_devices(wish, worker))


def changes_devices(wish: Wish, worker: Worker) -> bool:
    """True if the wish gives the worker other vGPUs, or what its vGPUs need of the VM."""
    mine = wish.workers[worker.name]
    return mine.change and mine.vgpus is not None and not equipped(worker, mine.vgpus)


def vgpus_wished(wish: Wish, worker: Worker) -> Vgpus:
    """Return the vGPUs that the worker will carry when it starts."""
    mine = wish.workers[worker.name]
    return mine.vgpus if mine.change and mine.vgpus is not None else worker.vgpus
