"""Which cards have room, now and once the sleepers are gone. The card is vCenter's choice, so every choice counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from vgpuctl.model.fleet import Fleet, Host
from vgpuctl.model.profiles import frame_gib
from vgpuctl.planning.cards import card_gib, most, size_of

Needs = tuple[tuple[int, int], ...]
"""(size in GiB, how many), largest first."""

_UNKNOWN = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class Load:
    """A card of `gib` with `count` vGPUs of `size` on it; an empty one has no size yet."""

    gib: int
    size: int = 0
    count: int = 0

    def room_for(self, size: int) -> int:
        if self.count and self.size != size:
            return 0
        return max(0, most(self.gib, size) - self.count)

    def with_one(self, size: int) -> Load:
        return Load(self.gib, size, self.count + 1)


def seats(fleet: Fleet, host: Host) -> Mapping[str, int]:
    """Who sits on which card: power states count, the host's own books only say where."""
    places = {name: index for index, card in enumerate(host.cards) for name in card.holds}
    running = {w.name: w.vgpus for w in fleet.on_host(host.name) if w.on and w.vgpus}
    seated = {name: places[name] for name in running if name in places}
    loads = _loads(fleet, host, seated)
    for name in sorted(running.keys() - seated.keys()):
        # Lately started, and the host does not say where yet: assume the fullest card that takes it.
        choices = may_choose(loads, running[name][0])
        index = max(choices, key=lambda i: loads[i].count, default=0)
        if host.cards:
            seated[name] = index
            loads = _loads(fleet, host, seated)
    return seated


def loads_without(fleet: Fleet, host: Host, leaving: Iterable[str] = ()) -> tuple[Load, ...]:
    """What the cards hold once `leaving` are gone."""
    gone = set(leaving)
    return _loads(fleet, host, {name: index for name, index in seats(fleet, host).items() if name not in gone})


def _loads(fleet: Fleet, host: Host, seated: Mapping[str, int]) -> tuple[Load, ...]:
    loads = [Load(card_gib(card)) for card in host.cards]
    strangers = [
        (index, vgpu)
        for index, card in enumerate(host.cards)
        for name in card.holds
        if name in fleet.strangers
        for vgpu in fleet.strangers[name].vgpus
    ]
    ours = [(index, vgpu) for name, index in seated.items() for vgpu in fleet.workers[name].vgpus]
    for index, vgpu in strangers + ours:
        loads[index] = loads[index].with_one(size_of(vgpu, host.cards[index]))
    return tuple(loads)


def needs_of(vgpus: Iterable[str]) -> Needs:
    counts: dict[int, int] = {}
    for vgpu in vgpus:
        size = _size(vgpu)
        counts[size] = counts.get(size, 0) + 1
    return tuple(sorted(counts.items(), reverse=True))


def _size(vgpu: str) -> int:
    """A vGPU whose name says no size fits on no card that we know of: better refused than guessed."""
    return frame_gib(vgpu) or _UNKNOWN


def may_choose(loads: tuple[Load, ...], vgpu: str) -> list[int]:
    """The cards on which vCenter may put this vGPU now."""
    size = _size(vgpu)
    return [index for index, load in enumerate(loads) if load.room_for(size) > 0]


def fits(loads: Iterable[Load], needs: Needs) -> bool:
    """Is there any way to seat all of `needs`? Cards already begun are filled first: that is never worse."""
    left: list[tuple[int, int]] = []
    empty = tuple(sorted(load for load in loads if not load.count))
    begun = [load for load in loads if load.count]
    for size, count in needs:
        rest = count - sum(load.room_for(size) for load in begun)
        if rest > 0:
            left.append((size, rest))
    return _fits_empty(empty, tuple(left))


@lru_cache(maxsize=4096)
def _fits_empty(empty: tuple[Load, ...], needs: Needs) -> bool:
    if not needs:
        return True
    (size, count), rest = needs[0], needs[1:]
    for load in dict.fromkeys(empty):
        if room := load.room_for(size):
            index = empty.index(load)
            remaining = ((size, count - room), *rest) if count > room else rest
            if _fits_empty(empty[:index] + empty[index + 1 :], remaining):
                return True
    return False


def safe_to_start(now: tuple[Load, ...], later: tuple[Load, ...], vgpu: str, rest: Needs) -> bool:
    """May a VM with this vGPU start now? There must be room, and whichever card vCenter takes, the rest still fits."""
    choices = may_choose(now, vgpu)
    size = _size(vgpu)
    return bool(choices) and all(fits(_placed(later, index, size), rest) for index in choices)


def _placed(loads: tuple[Load, ...], index: int, size: int) -> tuple[Load, ...]:
    return (*loads[:index], loads[index].with_one(size), *loads[index + 1 :])


def can_be_started(loads: Iterable[Load], needs: Needs) -> bool:
    """Is there an order of starts that ends well whatever cards vCenter chooses on the way?"""
    if len(needs) <= 1:
        return fits(loads, needs)
    return _can_be_started(tuple(sorted(loads)), needs)


@lru_cache(maxsize=65536)
def _can_be_started(loads: tuple[Load, ...], needs: Needs) -> bool:
    if not needs:
        return True
    if not fits(loads, needs):
        return False
    for position, (size, count) in enumerate(needs):
        fewer = ((size, count - 1),) if count > 1 else ()
        rest = needs[:position] + fewer + needs[position + 1 :]
        choices = [index for index, load in enumerate(loads) if load.room_for(size) > 0]
        if choices and all(_can_be_started(tuple(sorted(_placed(loads, i, size))), rest) for i in choices):
            return True
    return False
