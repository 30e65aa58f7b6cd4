"""The laws of provisioning: whatever vCenter and the order of things do, it ends well, and few are out at once."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.laws.test_plans import closed_subsets
from tests.support.fleets import HALF, card, node, with_node, worker
from tests.support.fleets import fleet as fleet_of
from tests.support.provisions import CATALOGUE, Vcenter, fleets_and_provisions, wish_for
from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.record import ASLEEP, CARD, FACTS, FRAME, HOST, VGPU, Record
from vgpuctl.model.requests import PatchNode
from vgpuctl.model.wish import Wish
from vgpuctl.operations import look_ahead
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.planner import plan
from vgpuctl.planning.releases import may_start
from vgpuctl.planning.steps import Attach, Drain, Label, PowerOn, equipped
from vgpuctl.planning.steps.rung import node_of
from vgpuctl.planning.wishes import BACK_FROM, PROVISION, label_wish

Case = tuple[Fleet, Wish]
MANY = 1000
CRASHES = 0.2
SOME = ("stays", "first", "half")


def lawful(case: Case) -> tuple[Fleet, Wish, Plan]:
    fleet, wish = case
    prospect = look_ahead(fleet, wish)
    assume(prospect.plan)
    return fleet, prospect.wish, prospect.plan


def right(some: Worker) -> bool:
    return equipped(some, CATALOGUE.profile(some.profile).vgpus)


def out(fleet: Fleet, among: set[str]) -> set[str]:
    """Those that no pod can use now."""
    return {name for name in among if not fleet.worker(name).on or node_of(fleet, name).unschedulable}


def in_use(fleet: Fleet, wish: Wish) -> set[str]:
    return set(wish.workers) - out(fleet, set(wish.workers))


def may_begin(fleet: Fleet, wish: Wish, todo: Plan) -> list[Step]:
    return [
        step
        for step in todo.ready()
        if not isinstance(step, PowerOn) or not may_start(fleet, wish, fleet.worker(step.worker))
    ]


def carry_out(fleet: Fleet, wish: Wish, seed: int) -> Fleet:
    """In any order of what may begin, on any cards that vCenter may choose, with crashes in between."""
    chance, vcenter, used = random.Random(seed), Vcenter(fleet), in_use(fleet, wish)
    todo, at_most = plan(fleet, wish), wish.max_unavailable or 0
    for _ in range(MANY):
        if not todo:
            break
        found = may_begin(fleet, wish, todo)
        assert found, f"stuck before {sorted(todo.names)}"
        step = chance.choice(found)
        if isinstance(step, Drain):
            fleet = step.applied_to(fleet)
        for request in step.requests(fleet, "now"):
            assert broken_by(request, fleet) == ""
        fleet = vcenter.after(step, fleet, chance)
        assert len(out(fleet, used)) <= at_most
        if chance.random() < CRASHES:
            again = look_ahead(fleet, wish_for(fleet, at_most).only(wish.workers))
            assert again.refusals == (), "what has begun well is not refused later"
            wish = again.wish
        todo = plan(fleet, wish)
    assert not todo
    return fleet


def ends_well(fleet: Fleet, wish: Wish, seed: int) -> None:
    after = carry_out(fleet, wish, seed)
    for name in wish.workers:
        assert right(after.worker(name))
        assert after.worker(name).power == fleet.worker(name).power
        was, now = node_of(fleet, name), node_of(after, name)
        assert (now.unschedulable, now.record) == (was.unschedulable, was.record)


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


@given(fleets_and_provisions())
def test_wherever_a_provision_stops_planning_again_gives_exactly_the_rest(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    for done in closed_subsets(todo):
        later = todo.applied_to(fleet, done)
        assert plan(later, wish).names == todo.names - done


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
    prospect = look_ahead(fleet, wish)
    for each in frozen:
        assert any(f"{each.name} is suspended" in refusal.message for refusal in prospect.refusals)
        assert not any(fleet.worker(step.worker).host == each.host for step in prospect.plan)


@pytest.mark.parametrize(("recorded", "gives"), [(PROVISION, True), (BACK_FROM + PROVISION, True), ("night", None)])
def test_power_is_given_back_to_whom_an_earlier_provision_or_its_way_back_left_off(
    recorded: str, gives: bool | None
) -> None:
    record = Record(wish=recorded, state=ASLEEP, since="", cordoned=True, awake_before=("w",))
    some = fleet_of(worker("w", on=False, node=node("w", unschedulable=True, record=record)))
    assert wish_for(some, 1).workers["w"].awake is gives


@st.composite
def labelled_fleets(draw: st.DrawFn) -> Fleet:
    """Nodes with our labels right, wrong and missing, and others' beside them; strays, and nodes of nobody."""
    fleet, _ = draw(fleets_and_provisions())
    keys = (CATALOGUE.label, *FACTS, "theirs", "vgpu.typed")
    some = st.dictionaries(st.sampled_from(keys), st.sampled_from(("x", "v100-4q-4GB", "esx-1")))
    for name in fleet.workers:
        fleet = with_node(fleet, name, labels=draw(some))
    strays = {name: worker(name, vgpus=(), node=node(name, labels=draw(some))) for name in ("gone-1", "gone-2")}
    return replace(fleet, strays=strays)


@given(labelled_fleets(), st.booleans())
def test_labels_come_true_once_and_nothing_else_is_written(fleet: Fleet, prune: bool) -> None:
    wish = label_wish(fleet, CATALOGUE, prune=prune)
    todo = plan(fleet, wish)
    assert all(isinstance(step, Label) for step in todo)
    after = todo.applied_to(fleet)
    assert not plan(after, wish), "a second run writes nothing"
    for name in (*fleet.workers, *fleet.strays):
        was, now = node_of(fleet, name), node_of(after, name)
        ours = {CATALOGUE.label, *FACTS}
        assert replace(now, labels={}) == replace(was, labels={})
        assert _without(now.labels, ours) == _without(was.labels, ours)
        if name in fleet.strays:
            assert now.labels == (_without(was.labels, ours) if prune else was.labels)
        else:
            assert {key: now.labels.get(key) for key in ours - {CARD}} == told_of(fleet.worker(name))


def told_of(some: Worker) -> dict[str, str | None]:
    """Reckoned anew: what the labels of one that carries these vGPUs should say."""
    sizes = [int(vgpu.rpartition("-")[2].removesuffix("q")) for vgpu in some.vgpus]
    return {
        CATALOGUE.label: CATALOGUE.carried(some.vgpus),
        VGPU: some.vgpus[0] if some.vgpus else None,
        FRAME: str(1024 * min(sizes)) if sizes else None,
        HOST: some.host,
    }


@given(labelled_fleets(), st.booleans())
def test_each_node_is_patched_once_with_no_more_than_is_wrong(fleet: Fleet, prune: bool) -> None:
    todo = plan(fleet, label_wish(fleet, CATALOGUE, prune=prune))
    assert len({step.worker for step in todo}) == len(todo.steps)
    for step in todo:
        (patch,) = step.requests(fleet, "now")
        assert isinstance(patch, PatchNode)
        labels = node_of(fleet, step.worker).labels
        assert broken_by(patch, fleet) == ""
        assert all(labels.get(key) != value for key, value in patch.labels.items())
        assert (patch.annotations, patch.unschedulable) == ({}, None)


def _without(labels: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key not in keys}
