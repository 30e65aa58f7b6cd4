"""Small hosts at random, and a slow, exhaustive player against vCenter.

The player knows nothing of the product's placement: its physics are those of `reckoning`, with every card and every
place on it ours to see and vCenter's to choose.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from tests.support.reckoning import Chip, Sitting, types_of
from vgpuctl.model.hosts import Card, CardMode

Chips = tuple[Chip, ...]
Vms = tuple[tuple[str, ...], ...]

SAME, MIXED, MIG = "sameSize", "mixedSize", "mig"
SIZE_GB = {"V100-16": 16, "V100-32": 32, "T4": 16, "A40": 48, "L4": 24, "A100-40": 40, "A30": 24}
EXACT = (("V100-16", SAME), ("V100-32", SAME), ("T4", SAME), ("A40", SAME), ("A100-40", SAME))
PLACED = (("A40", MIXED), ("L4", MIXED), ("A100-40", MIXED), ("A100-40", MIG), ("A30", MIG))
FEW = 4


def cards_of(chips: Chips) -> tuple[Card, ...]:
    """The same cards as the product sees them."""
    return tuple(_card(index, chip) for index, chip in enumerate(chips))


def _card(index: int, chip: Chip) -> Card:
    size = SIZE_GB[chip.model]
    return Card(
        pci_id=f"0000:{0x3B + index:02x}:00.0",
        model=f"{chip.model.partition('-')[0]}-{size}",
        frame_mib=size * 1024,
        mode=CardMode.MIG if chip.mode == MIG else CardMode(chip.mode),
        holds=tuple(dict.fromkeys(sitting.vm for sitting in chip.sitting)),
    )


@st.composite
def racks(draw: st.DrawFn, kinds: tuple[tuple[str, str], ...], most: int = 3) -> Chips:
    """Cards that hold what could be started on them one after another."""
    chips = []
    for index in range(draw(st.integers(1, most))):
        chip = Chip(*draw(st.sampled_from(kinds)))
        for number in range(draw(st.integers(0, 2))):
            name = draw(st.sampled_from(few_types(chip)))
            if starts := chip.starts_for(name):
                chip = chip.with_one_more(Sitting(f"old-{index}-{number}", name, draw(st.sampled_from(starts))))
        chips.append(chip)
    return tuple(chips)


@cache
def few_types(chip: Chip) -> list[str]:
    """Large ones: of them a card is soon full, and a search soon over."""
    return [each.name for each in types_of(chip.model, chip.mode).values() if each.most <= FEW]


@st.composite
def vms(draw: st.DrawFn, chips: Chips, most: int = 4, vgpus: int = 2) -> Vms:
    names = sorted({name for chip in chips for name in few_types(chip)})
    one = st.lists(st.sampled_from(names), min_size=1, max_size=vgpus).map(tuple)
    return tuple(draw(st.lists(one, min_size=1, max_size=most)))


def all_seated(chips: Chips, vgpus: tuple[str, ...]) -> bool:
    """Is there any way to seat these, cards and places being ours to choose?"""
    return _all_seated(_plain(chips), tuple(sorted(vgpus)))


@cache
def _all_seated(chips: Chips, vgpus: tuple[str, ...]) -> bool:
    return not vgpus or any(_all_seated(_plain(after), vgpus[1:]) for after in _ways(chips, vgpus[0]))


def can_win(chips: Chips, vms: Vms) -> bool:
    """We choose who starts next, vCenter the cards and places: can we have all of them started?"""
    return _can_win(_plain(chips), tuple(sorted(vms)))


@cache
def _can_win(chips: Chips, vms: Vms) -> bool:
    return not vms or any(ends_well(chips, vm, _without(vms, vm)) for vm in set(vms))


def ends_well(chips: Chips, vm: tuple[str, ...], rest: Vms) -> bool:
    """Does this start succeed whatever vCenter does, and leave us where we can win?"""
    found = [after for order in set(itertools.permutations(vm)) for after in _started(_plain(chips), order)]
    return None not in found and all(_can_win(after, tuple(sorted(rest))) for after in set(found) if after is not None)


@cache
def _started(chips: Chips, vgpus: tuple[str, ...]) -> frozenset[Chips | None]:
    """What may come of it; None: one of its vGPUs finds no room."""
    if not vgpus:
        return frozenset({chips})
    found = [_started(_plain(after), vgpus[1:]) for after in _ways(chips, vgpus[0])]
    return frozenset().union(*found) if found else frozenset({None})


def _ways(chips: Chips, vgpu: str) -> Iterator[Chips]:
    for index, chip in enumerate(chips):
        for start in chip.starts_for(vgpu):
            yield (*chips[:index], chip.with_one_more(Sitting("", vgpu, start)), *chips[index + 1 :])


def _plain(chips: Chips) -> Chips:
    """Nameless and in order: what is alike is looked at once."""
    nameless = [replace(c, sitting=tuple(sorted(s._replace(vm="") for s in c.sitting))) for c in chips]
    return tuple(sorted(nameless, key=lambda chip: (chip.model, chip.mode, chip.sitting)))


def _without(vms: Vms, vm: tuple[str, ...]) -> Vms:
    index = vms.index(vm)
    return vms[:index] + vms[index + 1 :]
