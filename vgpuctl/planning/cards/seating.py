"""Which VM is on which card of a host. Power states say what runs; the host's own books only say where."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.hosts import Host
from vgpuctl.planning.cards.card_rules import Load, kind_of
from vgpuctl.planning.cards.placement import Loads, Vgpus, alike, may_choose

#: How many seatings are searched if the books do not say which card a VM is on.
MOST_SEATINGS = 256

UNKNOWN = ("unknown-vgpu",)
"""The vGPUs of a VM on a card if nothing is known of them: it may take the whole card."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A VM that runs. `cards`: the cards on which the host's books show it; empty while they do not show it yet."""

    name: str
    vgpus: Vgpus
    cards: tuple[int, ...] = ()
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class Seating:
    """One way in which all VMs may be seated, with the cards in the host's order. `cards_of`: the cards of each VM."""

    loads: Loads
    cards_of: dict[str, tuple[int, ...]] = field(compare=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class PossibleSeatings:
    """All ways to seat a host's VMs. `exact`: the books show every VM. `complete`: the search covered every way."""

    ways: tuple[Loads, ...]
    exact: bool
    complete: bool


def booked(host: Host) -> dict[str, tuple[int, ...]]:
    """Return, for each VM in the host's books, the cards on which they show it."""
    cards: dict[str, tuple[int, ...]] = {}
    for index, card in enumerate(host.cards):
        for name in card.holds:
            cards[name] = (*cards.get(name, ()), index)
    return cards


def occupants(fleet: Fleet, host: Host, leaving: Collection[str] = (), *, gone: bool = False) -> list[Occupant]:
    """Return the VMs that run on this host. With `gone`, leave out the `leaving` ones, as if they had stopped."""
    cards = booked(host)
    # vSphere: power states count. `graphicsInfo.vm`, the host's books, may still list a VM that has stopped.
    running = [w for w in fleet.on_host(host.name) if w.vgpus and w.on and not (gone and w.name in leaving)]
    ours = [Occupant(w.name, w.vgpus, cards.get(w.name, ()), w.name in leaving) for w in running]
    return [*ours, *_strangers(fleet, host, cards)]


def _strangers(fleet: Fleet, host: Host, cards: dict[str, tuple[int, ...]]) -> Iterator[Occupant]:
    for name, seats in cards.items():
        if name in fleet.workers:
            continue
        stranger = fleet.strangers.get(name)
        # An object that cannot be read is taken at its worst: it runs, and it fills its card (decision 0018).
        if stranger is None or stranger.on:
            yield Occupant(name, (stranger.vgpus if stranger else ()) or UNKNOWN, seats)
    # vSphere: `graphicsInfo` may not list yet a VM that has just started.
    for stranger in fleet.strangers_on(host.name):
        if stranger.on and stranger.vgpus and stranger.name not in cards:
            yield Occupant(stranger.name, stranger.vgpus)


def possible_seatings(host: Host, running: Iterable[Occupant], needs: Iterable[Vgpus] = ()) -> PossibleSeatings:
    """Return all ways to seat these VMs. If they and all VMs to come are alike, one way is as good as another."""
    running = list(running)
    unseated = [occupant for occupant in running if not occupant.cards]
    ways, complete = _searched(host, running, any_way=alike([*(occupant.vgpus for occupant in unseated), *needs]))
    return PossibleSeatings(tuple(way.loads for way in ways), exact=not unseated, complete=complete)


def likely(host: Host, running: Iterable[Occupant]) -> Seating:
    """Return the likeliest seating: a VM that is in no books yet is put on the fullest card that takes it."""
    return _searched(host, list(running), any_way=True)[0][0]


def _searched(host: Host, running: list[Occupant], any_way: bool) -> tuple[list[Seating], bool]:
    """Return the seatings, and if all were searched. `any_way`: for VMs not in the books, the first way will do."""
    ways, complete = [Seating(tuple(Load(kind_of(card)) for card in host.cards))], True
    for occupant in sorted(running, key=lambda each: not each.cards) if host.cards else ():
        found = _lawful(occupant, [after for way in ways for after in _seatings(way, occupant)])
        if any_way and not occupant.cards:
            found = found[:1]
        complete = complete and len(found) <= MOST_SEATINGS
        ways = found[:MOST_SEATINGS]
    return ways, complete


def _lawful(occupant: Occupant, ways: list[Seating]) -> list[Seating]:
    """Keep the possible seatings, unless none is. The books do not say which of a VM's vGPUs is on which card."""
    # vSphere: `graphicsInfo.vm` lists the VMs of a card, not their vGPUs.
    if len(ways) == 1:
        return ways
    lawful = [way for way in ways if all(way.loads[card].lawful() for card in way.cards_of[occupant.name])]
    return list(dict.fromkeys(lawful or ways))


def _seatings(way: Seating, occupant: Occupant) -> Iterator[Seating]:
    for loads, cards in _one_by_one(way.loads, occupant):
        yield Seating(loads, {**way.cards_of, occupant.name: cards})


def _one_by_one(loads: Loads, occupant: Occupant) -> Iterator[tuple[Loads, tuple[int, ...]]]:
    """Yield the seatings of one VM: each card in its books holds at least one of its vGPUs; one card leaves no
    choice."""
    if len(occupant.cards) == 1:
        yield _all_on(loads, occupant, occupant.cards[0]), occupant.cards * len(occupant.vgpus)
        return
    begun: dict[tuple[Loads, frozenset[int]], tuple[int, ...]] = {(loads, frozenset()): ()}
    for left in reversed(range(len(occupant.vgpus))):
        vgpu = occupant.vgpus[len(occupant.vgpus) - 1 - left]
        after: dict[tuple[Loads, frozenset[int]], tuple[int, ...]] = {}
        for (now, seen), cards in begun.items():
            for index in occupant.cards or _anywhere(now, vgpu):
                if index not in seen or len(occupant.cards) - len(seen) <= left:
                    key = (_with(now, index, vgpu, occupant.leaves), seen | {index})
                    after.setdefault(key, (*cards, index))
        begun = dict(islice(after.items(), MOST_SEATINGS))
    for (now, _), cards in begun.items():
        yield now, cards


def _all_on(loads: Loads, occupant: Occupant, index: int) -> Loads:
    for vgpu in occupant.vgpus:
        loads = _with(loads, index, vgpu, occupant.leaves)
    return loads


def _anywhere(loads: Loads, vgpu: str) -> list[int]:
    """Return the cards where this vGPU may be, beside the VMs that are there; the fullest first."""
    choices = may_choose(loads, vgpu) or range(len(loads))
    return sorted(choices, key=lambda index: -len(loads[index].held) - len(loads[index].leaving))


def _with(loads: Loads, index: int, vgpu: str, leaves: bool) -> Loads:
    return (*loads[:index], loads[index].with_one(vgpu, leaves=leaves), *loads[index + 1 :])
