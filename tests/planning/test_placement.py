"""Placement against a slow exhaustive search, and the rules of one card."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fleets import HALF, QUARTER, WHOLE, card, fleet, worker
from vgpuctl.model.fleet import Stranger
from vgpuctl.planning.cards import most
from vgpuctl.planning.placement import (
    Load,
    can_be_started,
    fits,
    loads_without,
    may_choose,
    needs_of,
    safe_to_start,
)

VGPUS = (QUARTER, HALF, WHOLE)
SIZES = {QUARTER: 4, HALF: 8, WHOLE: 16}


@st.composite
def loads(draw: st.DrawFn) -> tuple[Load, ...]:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.sampled_from([4, 8, 16]))
        count = draw(st.integers(0, 16 // size))
        found.append(Load(16, size if count else 0, count))
    return tuple(found)


def seatings(cards: tuple[Load, ...], vgpus: list[str]) -> bool:
    """Tries every way to put every vGPU on every card."""
    for choice in itertools.product(range(len(cards)), repeat=len(vgpus)):
        now = list(cards)
        for vgpu, index in zip(vgpus, choice, strict=True):
            size, load = SIZES[vgpu], now[index]
            if (load.count and load.size != size) or load.count >= 16 // size:
                break
            now[index] = Load(16, size, load.count + 1)
        else:
            return True
    return False


@given(loads(), st.lists(st.sampled_from(VGPUS), max_size=5))
def test_fits_agrees_with_trying_everything(cards: tuple[Load, ...], vgpus: list[str]) -> None:
    assert fits(cards, needs_of(vgpus)) == seatings(cards, vgpus)


@given(loads(), st.lists(st.sampled_from(VGPUS), min_size=1, max_size=4))
def test_what_can_be_started_fits_and_has_a_safe_first_start(cards: tuple[Load, ...], vgpus: list[str]) -> None:
    if can_be_started(cards, needs_of(vgpus)):
        assert fits(cards, needs_of(vgpus))
        rests = [(vgpu, [*vgpus[:i], *vgpus[i + 1 :]]) for i, vgpu in enumerate(vgpus)]
        assert any(safe_to_start(cards, cards, vgpu, needs_of(rest)) for vgpu, rest in rests)


def test_the_first_vgpu_fixes_the_size_of_its_card() -> None:
    begun = (Load(16, 4, 1),)
    assert may_choose(begun, QUARTER) == [0]
    assert may_choose(begun, HALF) == []


def test_a_start_waits_where_vcenter_could_choose_the_card_that_another_needs() -> None:
    """The trap of the performance policy: a quarter on each of two cards leaves no whole one."""
    two = (Load(16), Load(16, 4, 1))
    assert may_choose(two, QUARTER) == [0, 1]
    assert not safe_to_start(two, two, QUARTER, needs_of([WHOLE]))
    assert safe_to_start(two, two, WHOLE, needs_of([QUARTER]))
    assert can_be_started(two, needs_of([QUARTER, WHOLE]))


def test_strangers_and_those_who_stay_keep_their_place() -> None:
    some = fleet(
        worker("worker-1"),
        worker("worker-2"),
        cards={"esx-1": [card(0, "worker-1", "worker-2", "other")]},
        strangers={"other": Stranger(name="other", vgpus=(QUARTER,))},
    )
    assert loads_without(some, some.hosts["esx-1"]) == (Load(16, 4, 3),)
    assert loads_without(some, some.hosts["esx-1"], ["worker-1"]) == (Load(16, 4, 2),)


def test_power_states_count_not_the_hosts_books() -> None:
    """The books may lag: who is off sits nowhere, who is on sits somewhere even if no card says so yet."""
    some = fleet(worker("gone", on=False), worker("new"), cards={"esx-1": [card(0, "gone")]})
    assert loads_without(some, some.hosts["esx-1"]) == (Load(16, 4, 1),)


@pytest.mark.parametrize(("gib", "size", "count"), [(16, 4, 4), (141, 8, 16), (40, 8, 5), (94, 6, 15), (64, 16, 4)])
def test_tables_come_before_formulas(gib: int, size: int, count: int) -> None:
    assert most(gib, size) == count
