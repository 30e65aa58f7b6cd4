"""Placement against a slow player that tries everything. Where places are not known, it may only be more careful."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.fleets import HALF, QUARTER, WHOLE
from tests.support.racks import EXACT, PLACED, Chips, Vms, all_seated, can_win, cards_of, ends_well, racks, vms
from vgpuctl.model.hosts import Card, CardMode
from vgpuctl.planning.cards.card_rules import Load, kind_of
from vgpuctl.planning.cards.placement import (
    Loads,
    can_be_started,
    fits,
    may_choose,
    needs_of,
    outcomes,
    safe_to_start,
    seated,
)

V100 = Load(kind_of(Card(pci_id="", model="V100-16", frame_mib=16384)))
A40 = Load(kind_of(Card(pci_id="", model="A40-48", frame_mib=49152)))
MIXED_A40 = Load(kind_of(Card(pci_id="", model="A40-48", frame_mib=49152, mode=CardMode.MIXED_SIZE)))

Case = tuple[Chips, Vms]


@st.composite
def exact(draw: st.DrawFn) -> Case:
    chips = draw(racks(EXACT))
    return chips, draw(vms(chips))


@st.composite
def placed(draw: st.DrawFn) -> Case:
    chips = draw(racks((*PLACED, ("V100-16", "sameSize")), most=2))
    return chips, draw(vms(chips, most=3))


def loads_of(chips: Chips) -> Loads:
    loads = []
    for card, chip in zip(cards_of(chips), chips, strict=True):
        load = Load(kind_of(card))
        for sitting in chip.sitting:
            load = load.with_one(sitting.type)
        loads.append(load)
    return tuple(loads)


@given(exact())
def test_what_fits_is_what_trying_everything_finds(case: Case) -> None:
    chips, some = case
    assert fits(loads_of(chips), needs_of(some)) == all_seated(chips, tuple(v for vm in some for v in vm))


@given(exact())
def test_it_can_be_started_exactly_where_vcenter_can_be_beaten(case: Case) -> None:
    chips, some = case
    assert can_be_started(loads_of(chips), needs_of(some)) == can_win(chips, some)


@given(exact())
def test_a_start_is_safe_exactly_where_no_choice_of_vcenter_spoils_the_rest(case: Case) -> None:
    chips, (first, *rest) = case
    assert safe_to_start(loads_of(chips), first, needs_of(rest)) == ends_well(chips, first, tuple(rest))


@given(placed())
def test_where_places_count_all_that_could_fit_is_seen(case: Case) -> None:
    chips, some = case
    if all_seated(chips, tuple(v for vm in some for v in vm)):
        assert fits(loads_of(chips), needs_of(some))


@given(placed())
def test_where_places_count_nothing_is_promised_that_vcenter_could_spoil(case: Case) -> None:
    chips, (first, *rest) = case
    if can_be_started(loads_of(chips), needs_of([first, *rest])):
        assert can_win(chips, (first, *rest))
    if safe_to_start(loads_of(chips), first, needs_of(rest)):
        assert ends_well(chips, first, tuple(rest))


@given(exact())
def test_what_can_be_started_has_a_safe_first_start(case: Case) -> None:
    chips, some = case
    loads = loads_of(chips)
    if can_be_started(loads, needs_of(some)):
        rests = [(vm, [*some[:index], *some[index + 1 :]]) for index, vm in enumerate(some)]
        assert any(safe_to_start(loads, vm, needs_of(rest)) for vm, rest in rests)


def test_the_first_vgpu_fixes_the_size_of_its_card() -> None:
    begun = (V100.with_one(QUARTER),)
    assert may_choose(begun, QUARTER) == [0]
    assert may_choose(begun, HALF) == []


def test_a_start_waits_where_vcenter_could_choose_the_card_that_another_needs() -> None:
    """The trap of the performance policy: a quarter on each of two cards leaves no whole one."""
    two = (V100, V100.with_one(QUARTER))
    assert may_choose(two, QUARTER) == [0, 1]
    assert not safe_to_start(two, (QUARTER,), needs_of([(WHOLE,)]))
    assert safe_to_start(two, (WHOLE,), needs_of([(QUARTER,)]))
    assert can_be_started(two, needs_of([(QUARTER,), (WHOLE,)]))


def test_the_order_of_starts_is_enough_where_each_vm_has_one_vgpu() -> None:
    """One of each size first: then every card has its size, and what is left finds its own."""
    two, needs = (V100, V100), needs_of([(HALF,), (HALF,), (QUARTER,), (QUARTER,)])
    assert can_be_started(two, needs)
    assert not safe_to_start((V100, V100.with_one(QUARTER)), (QUARTER,), needs_of([(HALF,), (HALF,)]))


def test_two_vgpus_at_once_may_begin_two_cards_at_once() -> None:
    needs = needs_of([(HALF, HALF), (QUARTER, QUARTER)])
    assert fits((V100, V100), needs)
    assert not can_be_started((V100, V100), needs)


def test_a_vm_with_two_whole_cards_needs_two_at_once() -> None:
    pair = (WHOLE, WHOLE)
    assert not fits((V100,), needs_of([pair]))
    assert can_be_started((V100, V100), needs_of([pair]))
    assert not can_be_started((V100, V100.with_one(QUARTER)), needs_of([pair]))
    assert not safe_to_start((V100, V100), (QUARTER,), needs_of([pair]))


def test_each_board_takes_its_own_types_only() -> None:
    both = (V100, A40)
    assert may_choose(both, "grid_v100-4q") == [0]
    assert may_choose(both, "nvidia_a40-4q") == [1]
    assert not fits(both, needs_of([("grid_v100-16q",), ("grid_v100-4q",)]))
    assert fits(both, needs_of([("grid_v100-16q",), ("nvidia_a40-4q",)]))


def test_in_mixed_size_two_small_ones_may_sit_in_both_halves() -> None:
    one = seated((MIXED_A40,), 0, "nvidia_a40-4q")
    two = seated(one, 0, "nvidia_a40-4q")
    half = needs_of([("nvidia_a40-24q",)])
    assert can_be_started(one, half)
    assert fits(two, half), "it may be"
    assert not can_be_started(two, half), "but nobody can be sure"
    assert can_be_started((MIXED_A40,), needs_of([("nvidia_a40-4q",), ("nvidia_a40-4q",), ("nvidia_a40-24q",)]))


def test_large_hosts_are_judged_quickly() -> None:
    eight = (V100,) * 8
    full = [(QUARTER,)] * 8 + [(HALF,)] * 4 + [(WHOLE,)] * 4
    assert can_be_started(eight, needs_of(full))
    assert not fits(eight, needs_of([*full, (QUARTER,)]))
    assert not can_be_started(eight, needs_of([(HALF, HALF)] * 4 + [(QUARTER, QUARTER)] * 8))
    assert len(outcomes(eight, (QUARTER,) * 16)) > 1
