"""The laws of provisioning as functions: some tests hold them, others see that each can be broken."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from tests.support.fleets import node, with_node, worker
from tests.support.provisions import CATALOGUE, Vcenter, fleets_and_provisions, wish_for
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.record import CARD, FACT_LABELS, FRAME, HOST, VGPU
from vgpuctl.model.requests import PatchNode
from vgpuctl.model.wish import Wish
from vgpuctl.operations import look_ahead
from vgpuctl.planning.cards.releases import may_start
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import Drain, Label, PowerOn, equipped
from vgpuctl.planning.steps.step import node_of
from vgpuctl.planning.wishes import label_wish

MANY = 1000
CRASHES = 0.2


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
        assert found, f"stuck before {sorted(todo.ids)}"
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
            wish = replace(again.wish, drain_first=wish.drain_first)
        todo = plan(fleet, wish)
    assert not todo
    return fleet


def ends_well(fleet: Fleet, wish: Wish, seed: int) -> None:
    """Never are more out than may be, and in the end all is as wished."""
    after = carry_out(fleet, wish, seed)
    for name in wish.workers:
        assert right(after.worker(name))
        assert after.worker(name).power == fleet.worker(name).power
        was, now = node_of(fleet, name), node_of(after, name)
        assert (now.unschedulable, now.record) == (was.unschedulable, was.record)


@st.composite
def labelled_fleets(draw: st.DrawFn) -> Fleet:
    """Nodes with our labels right, wrong and missing, and others' beside them; strays, and nodes of nobody."""
    fleet, _ = draw(fleets_and_provisions())
    keys = (CATALOGUE.label, *FACT_LABELS, "theirs", "vgpu.typed")
    some = st.dictionaries(st.sampled_from(keys), st.sampled_from(("x", "v100-4q-4GB", "esx-1")))
    for name in fleet.workers:
        fleet = with_node(fleet, name, labels=draw(some))
    strays = {name: worker(name, vgpus=(), node=node(name, labels=draw(some))) for name in ("gone-1", "gone-2")}
    return replace(fleet, strays=strays)


def labels_come_true_once(fleet: Fleet, prune: bool) -> None:
    """Nothing else is written."""
    wish = label_wish(fleet, CATALOGUE, prune=prune)
    todo = plan(fleet, wish)
    assert all(isinstance(step, Label) for step in todo)
    after = todo.applied_to(fleet)
    assert not plan(after, wish), "a second run writes nothing"
    for name in (*fleet.workers, *fleet.strays):
        was, now = node_of(fleet, name), node_of(after, name)
        ours = {CATALOGUE.label, *FACT_LABELS}
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


def each_node_is_patched_once(fleet: Fleet, prune: bool) -> None:
    """No patch holds more than is wrong."""
    todo = plan(fleet, label_wish(fleet, CATALOGUE, prune=prune))
    assert len({step.subject for step in todo}) == len(todo.steps)
    for step in todo:
        (patch,) = step.requests(fleet, "now")
        assert isinstance(patch, PatchNode)
        labels = node_of(fleet, step.subject).labels
        assert broken_by(patch, fleet) == ""
        assert all(labels.get(key) != value for key, value in patch.labels.items())
        assert (patch.annotations, patch.unschedulable) == ({}, None)


def _without(labels: Mapping[str, str], keys: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key not in keys}
