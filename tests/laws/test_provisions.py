"""The laws of provisioning: whatever vCenter and the order of things do, it ends well, and few are out at once."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.fleets import HALF, QUARTER, card, node, worker
from tests.support.fleets import fleet as fleet_of
from tests.support.planned import Case, closed_subsets, lawful
from tests.support.provision_laws import (
    each_node_is_patched_once,
    ends_well,
    labelled_fleets,
    labels_come_true_once,
    right,
)
from tests.support.provisions import fleets_and_provisions, wish_for
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.operations import look_ahead
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import Attach
from vgpuctl.planning.wishes import BACK_FROM, PROVISION

SOME = ("stays", "first", "half")


@given(fleets_and_provisions(), st.integers(0, 1 << 20))
def test_whatever_the_order_and_the_cards_it_ends_well_with_few_out_at_once(case: Case, seed: int) -> None:
    fleet, wish, _ = lawful(case)
    ends_well(fleet, wish, seed)


@pytest.mark.long
@settings(max_examples=5000)
@given(fleets_and_provisions(), st.integers(0, 1 << 20))
def test_the_same_for_many_more_fleets(case: Case, seed: int) -> None:
    fleet, wish, _ = lawful(case)
    ends_well(fleet, wish, seed)


def test_a_start_that_could_take_the_only_card_of_a_later_one_is_out_together_with_it() -> None:
    """The first one comes back as it was, maybe onto the empty card: then no card is left for a half."""
    first = worker("first", memory_locked=False)
    some = fleet_of(
        worker("stays"), first, worker("half", profile="v100-8q-8GB"), cards={"esx-1": [card(0), card(1, *SOME)]}
    )
    (refusal,) = look_ahead(some, wish_for(some, 1)).refusals
    assert "all 2 must be out at once" in refusal.message
    for seed in range(20):
        ends_well(some, wish_for(some, 2), seed)


@pytest.mark.parametrize("names", [("a", "b", "c", "d"), ("c", "d", "a", "b")])
def test_a_wave_that_is_half_done_binds_no_other(names: tuple[str, ...]) -> None:
    """Two cards change their size one after the other, wherever the first run was cut short."""
    cards = [card(0, "a", "b"), card(1, "c", "d")]
    some = fleet_of(*(worker(name, HALF, profile="v100-4q-4GB") for name in names), cards={"esx-1": cards})
    for seed in range(40):
        ends_well(some, wish_for(some, 2), seed)


def test_a_worker_that_another_one_turns_out_to_need_still_waits_for_its_turn() -> None:
    """Once a and b are out, a may take the card that b left. Then b needs c's card, and c goes only when a is back."""
    a, c = worker("a", HALF, profile="two-halves"), worker("c", QUARTER, profile="v100-8q-8GB")
    b = worker("b", HALF, profile="v100-8q-8GB", memory_locked=False)
    some = fleet_of(a, b, c, cards={"esx-1": [card(0, "a", "b"), card(1, "c")]})
    for seed in range(40):
        ends_well(some, look_ahead(some, wish_for(some, 2)).wish, seed)


@given(fleets_and_provisions())
def test_wherever_a_provision_stops_planning_again_gives_exactly_the_rest(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    for done in closed_subsets(todo):
        later = todo.applied_to(fleet, done)
        assert plan(later, wish).ids == todo.ids - done


@given(fleets_and_provisions())
def test_only_what_is_wrong_is_touched_and_who_is_off_stays_off(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    for name in wish.workers:
        rungs = todo.of(name)
        assert bool(rungs) is not right(fleet.worker(name))
        assert fleet.worker(name).on or all(isinstance(step, Attach) for step in rungs)


@given(fleets_and_provisions())
def test_a_suspended_worker_is_refused_and_none_of_its_host_is_touched(case: Case) -> None:
    fleet, wish = case
    frozen = [w for w in fleet.workers.values() if w.power is Power.SUSPENDED and not right(w)]
    assume(frozen)
    preview = look_ahead(fleet, wish)
    for each in frozen:
        assert any(f"{each.name} is suspended" in refusal.message for refusal in preview.refusals)
        assert not any(fleet.worker(step.subject).host == each.host for step in preview.plan)


@pytest.mark.parametrize(("recorded", "gives"), [(PROVISION, True), (BACK_FROM + PROVISION, True), ("night", None)])
def test_power_is_given_back_to_whom_an_earlier_provision_or_its_way_back_left_off(
    recorded: str, gives: bool | None
) -> None:
    record = Record(wish=recorded, state=ASLEEP, since="", cordoned=True, awake_before=("w",))
    some = fleet_of(worker("w", on=False, node=node("w", unschedulable=True, record=record)))
    assert wish_for(some, 1).workers["w"].awake is gives


@given(labelled_fleets(), st.booleans())
def test_labels_come_true_once_and_nothing_else_is_written(fleet: Fleet, prune: bool) -> None:
    labels_come_true_once(fleet, prune)


@given(labelled_fleets(), st.booleans())
def test_each_node_is_patched_once_with_no_more_than_is_wrong(fleet: Fleet, prune: bool) -> None:
    each_node_is_patched_once(fleet, prune)
