"""What can be started on a host's cards. vCenter chooses the card, so every choice it may make counts.

It is a game: we choose the next start, vCenter chooses its card. A wish is sound if we can win whatever vCenter does.
We do not build on the host's policy, which prefers one card to another: the order of starts is nearly always enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from vgpuctl.planning.cards.boards import type_of
from vgpuctl.planning.cards.card_rules import Load

Vgpus = tuple[str, ...]
"""The vGPUs that one VM carries."""

Needs = tuple[Vgpus, ...]
"""The VMs that have yet to start, the largest first."""

Loads = tuple[Load, ...]

#: How many positions of the game are searched before it counts as lost: a refusal is better than a guess.
MOST_POSITIONS = 5000

_LARGE = 1 << 20


def needs_of(vms: Iterable[Vgpus]) -> Needs:
    return tuple(sorted((_largest_first(vgpus) for vgpus in vms if vgpus), key=_size, reverse=True))


def _largest_first(vgpus: Iterable[str]) -> Vgpus:
    return tuple(sorted(vgpus, key=lambda vgpu: _size((vgpu,)), reverse=True))


def _size(vgpus: Vgpus) -> tuple[int, Vgpus]:
    return sum(type_of(vgpu).gib or _LARGE for vgpu in vgpus), vgpus


def may_choose(loads: Sequence[Load], vgpu: str) -> list[int]:
    """Return the cards on which vCenter may put this vGPU now."""
    # vSphere: the card is vCenter's choice. We do not rely on its assignment policy (architecture.md, Placement).
    return [index for index, load in enumerate(loads) if load.may_take(vgpu)]


def seated(loads: Loads, index: int, vgpu: str) -> Loads:
    return (*loads[:index], loads[index].with_one(vgpu), *loads[index + 1 :])


def alike(needs: Iterable[Vgpus]) -> bool:
    """True if all vGPUs are of one type. Then each takes one seat from the sum of seats, on whichever card it lands."""
    return len({vgpu for vgpus in needs for vgpu in vgpus}) <= 1


def seats_left(loads: Loads, vgpu: str) -> int:
    return sum(load.room(vgpu) for load in loads)


def fits(loads: Loads, needs: Needs) -> bool:
    """True if `needs` could be seated in at least one way, were the cards ours to choose."""
    return _fits(tuple(sorted(loads)), tuple(vgpu for vgpus in needs for vgpu in vgpus))


@lru_cache(maxsize=65536)
def _fits(loads: Loads, vgpus: Vgpus) -> bool:
    if not vgpus:
        return True
    choices = _different(loads, may_choose(loads, vgpus[0]))
    if len(set(vgpus)) == 1:
        choices = choices[-1:]
    return any(_fits(_sorted(seated(loads, index, vgpus[0])), vgpus[1:]) for index in reversed(choices))


def _different(loads: Loads, choices: Iterable[int]) -> list[int]:
    """Return one card of each group of equal cards."""
    return list({loads[index]: index for index in choices}.values())


def _sorted(loads: Loads) -> Loads:
    return tuple(sorted(loads))


def outcomes(loads: Loads, vgpus: Vgpus) -> frozenset[Loads]:
    """Return every load that may result when these vGPUs start, in any order, on any card that vCenter may choose.

    Empty if one of them may find no room.
    """
    # vSphere: a VM may carry several vGPUs (since 6.7 U3), and each may land on another card.
    positions = {(_sorted(loads), _largest_first(vgpus))}
    for _ in vgpus:
        after: set[tuple[Loads, Vgpus]] = set()
        for cards, left in positions:
            for vgpu in set(left):
                choices = _choices(cards, vgpu)
                if not choices or len(after) > MOST_POSITIONS:
                    return frozenset()
                after |= {(_sorted(seated(cards, index, vgpu)), _less(left, vgpu)) for index in choices}
        positions = after
    return frozenset(cards for cards, _ in positions)


def _choices(loads: Loads, vgpu: str) -> list[int]:
    """Return the cards that vCenter may choose for this vGPU. Empty if no card is certain to have room now.

    Leaving VMs may be gone by the time vCenter chooses, so their places count as possible choices.
    """
    if not seats_left(loads, vgpu):
        return []
    return _different(loads, may_choose([load.later() for load in loads], vgpu))


def _less(vgpus: Vgpus, vgpu: str) -> Vgpus:
    index = vgpus.index(vgpu)
    return vgpus[:index] + vgpus[index + 1 :]


def can_be_started(loads: Loads, needs: Needs) -> bool:
    """True if some order of starts ends well, whatever cards vCenter chooses on the way."""
    return _can_be_started(_sorted(loads), needs)


@lru_cache(maxsize=16384)
def _can_be_started(loads: Loads, needs: Needs) -> bool:
    return _Game().won(loads, needs)


class _Game:
    """The search for an order of starts. It remembers the positions it has seen."""

    def __init__(self) -> None:
        self._known: dict[tuple[Loads, Needs], bool] = {}

    def won(self, loads: Loads, needs: Needs) -> bool:
        if alike(needs):
            return not needs or seats_left(loads, needs[0][0]) >= sum(map(len, needs))
        if (loads, needs) not in self._known:
            self._known[loads, needs] = len(self._known) < MOST_POSITIONS and self._search(loads, needs)
        return self._known[loads, needs]

    def _search(self, loads: Loads, needs: Needs) -> bool:
        return fits(loads, needs) and any(self._ends_well(loads, vm, rest) for vm, rest in _starts(needs))

    def _ends_well(self, loads: Loads, vm: Vgpus, rest: Needs) -> bool:
        found = outcomes(loads, vm)
        return bool(found) and all(self.won(after, rest) for after in found)


def _starts(needs: Needs) -> Iterator[tuple[Vgpus, Needs]]:
    """Yield each VM that may start next, with the VMs that are left after it."""
    for vm in dict.fromkeys(needs):
        index = needs.index(vm)
        yield vm, needs[:index] + needs[index + 1 :]


def safe_to_start(loads: Loads, vgpus: Vgpus, rest: Needs) -> bool:
    """True if these vGPUs may start now.

    There must be room, and wherever vCenter seats them, the rest can still be started. Count the vGPUs of starts that
    are under way as part of these: vCenter need not seat starts in the order of the requests.
    """
    # The rest starts once all leaving VMs are gone: release before acquire (architecture.md, One look).
    later = tuple(load.later() for load in loads)
    if alike([vgpus, *rest]):
        enough = seats_left(later, vgpus[0]) >= len(vgpus) + sum(map(len, rest))
        return enough and seats_left(loads, vgpus[0]) >= len(vgpus)
    found = outcomes(loads, vgpus)
    return bool(found) and all(can_be_started(tuple(load.later() for load in after), rest) for after in found)
