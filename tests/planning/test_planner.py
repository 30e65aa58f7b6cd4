"""The planner's rules, one by one, on the mission's host."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fleets import (
    CATALOGUE,
    HALF,
    LABEL,
    LABELLED,
    QUARTER,
    WHOLE,
    day_and_night,
    fleet,
    night_wish,
    node,
    pod,
    timetable,
    with_node,
    with_worker,
    worker,
)
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.pods import Pod
from vgpuctl.model.record import ASLEEP, CARD, FRAME, HOST, VGPU, Record
from vgpuctl.model.requests import PatchNode
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.planning.cards.releases import may_start
from vgpuctl.planning.checks.refusals import refusals
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import Attach, Cordon, Drain, Label, PowerOn, Suspend, missing_signs
from vgpuctl.planning.steps.returning import LOOKED_S
from vgpuctl.planning.steps.step import node_of
from vgpuctl.planning.wishes import (
    Provisioning,
    former_wish,
    label_wish,
    provision_wish,
    switch_wish,
    with_devices_back,
)

SLEPT = Record(wish="night", state=ASLEEP, since="", cordoned=True, lease="L1", heartbeat="H1")


def test_the_night_worker_needs_the_stops_of_all_who_sit_on_its_card() -> None:
    some, wish = day_and_night()
    stops = {Suspend.of(f"worker-{n}") for n in range(1, 5)}
    assert stops <= plan(some, wish).needs[PowerOn.of("worker-5")]


def test_it_may_not_start_before_the_card_is_free() -> None:
    some, wish = day_and_night()
    night = some.worker("worker-5")
    assert may_start(some, wish, night) == Wait(Reason.CARD)
    for n in range(1, 5):
        some = with_worker(some, f"worker-{n}", power=Power.SUSPENDED)
    assert may_start(some, wish, night) is None


def test_a_start_that_no_card_shows_yet_keeps_its_place() -> None:
    """Two whole-card workers and one free card: the second waits while the first one starts."""
    first, second = worker("n1", WHOLE, on=False), worker("n2", WHOLE, on=False)
    some = fleet(first, second)
    wish = switch_wish(some, CATALOGUE, timetable(night=("n1", "n2")), "night")
    assert may_start(some, wish, second, frozenset({"n1"})) == Wait(Reason.CARD)


def test_no_pod_leaves_before_all_who_leave_are_cordoned() -> None:
    """Else its replacement could land on the next worker to be drained."""
    some, wish = day_and_night()
    todo = plan(some, wish)
    cordons = {Cordon.of(f"worker-{n}") for n in range(1, 5)}
    for n in range(1, 5):
        assert todo.needs[Drain.of(f"worker-{n}")] == cordons


def test_the_first_write_records_who_was_awake() -> None:
    some, wish = day_and_night()
    cordons = [step for step in plan(some, wish) if isinstance(step, Cordon)]
    assert len(cordons) == 4
    for step in cordons:
        after = step.applied_to(some).worker(step.worker).node
        assert after is not None
        assert after.record is not None
        assert after.record.awake_before == ("worker-1", "worker-2", "worker-3", "worker-4")


def test_somebody_who_woke_a_sleeper_and_stopped_it_again_left_an_old_mark() -> None:
    """The mark tells the last Lease; with another Lease on the node it would take old evidence for new."""
    some, _ = day_and_night()
    for n in range(1, 5):
        inside = node(f"worker-{n}", unschedulable=True, record=SLEPT)
        some = with_worker(some, f"worker-{n}", power=Power.SUSPENDED, node=inside)
    some = with_node(some, "worker-2", lease_renewed="L2")
    marked = {step.subject for step in plan(some, night_wish(some)) if step.id.startswith("MarkAsleep")}
    assert marked == {"worker-2", "worker-5"}


SMALL = "v100-4q-4GB"


def plugin(**more: Any) -> Pod:
    return pod("p", "worker-1", **{"owner": "DaemonSet/nvidia-device-plugin-daemonset", "namespace": "gpu", **more})


@pytest.mark.parametrize(
    ("inside", "missing"),
    [
        ({"lease_renewed": "L1", "heartbeat": "H2"}, "has not renewed the lease"),
        ({"lease_renewed": "L2", "heartbeat": "H1", "alive_s": LOOKED_S - 1}, "from before the sleep"),
        ({"lease_renewed": "L2", "heartbeat": "H1", "alive_s": LOOKED_S}, ""),
        ({"lease_renewed": "L1", "heartbeat": "H1", "alive_s": LOOKED_S}, "has not renewed the lease"),
        ({"lease_renewed": "L2", "heartbeat": "H1", "alive_s": LOOKED_S, "ready": False}, "not Ready"),
        ({"lease_renewed": "L2", "heartbeat": "H2", "ready": False}, "not Ready"),
        ({"lease_renewed": "L2", "heartbeat": "H2", "gpus": 0}, "no nvidia.com/gpu"),
        ({"lease_renewed": "L2", "heartbeat": "H2", "taints": ("node.kubernetes.io/unreachable",)}, "is tainted"),
        (
            {"lease_renewed": "L2", "heartbeat": "H2", "pods": (plugin(ready=False),)},
            "device plugin gpu/p is not Ready",
        ),
        ({"lease_renewed": "L2", "heartbeat": "H2", "pods": (plugin(ready=True),)}, ""),
        ({"lease_renewed": "L2", "heartbeat": "H2", "pods": (plugin(ready=False, owner="DaemonSet/other"),)}, ""),
        ({"lease_renewed": "L2", "heartbeat": "H2"}, ""),
    ],
)
def test_a_node_is_truly_back_only_with_every_sign(inside: dict[str, object], missing: str) -> None:
    said = missing_signs(worker("worker-1", node=node("worker-1", record=SLEPT, **inside)))
    assert (missing in said) if missing else said == ""


def test_labels_tell_what_the_vm_carries_not_what_it_should() -> None:
    some = fleet(worker("a", HALF, on=False), worker("b", QUARTER, on=False), worker("c", on=False, vgpus=()))
    some = with_node(some, "c", labels={LABEL: "v100-4q-4GB"})
    labels = {
        step.worker: dict(step.labels)[LABEL]
        for step in plan(some, label_wish(some, CATALOGUE))
        if isinstance(step, Label)
    }
    assert labels == {"a": "v100-8q-8GB", "b": "v100-4q-4GB", "c": None}


def test_provision_leaves_power_as_it_was() -> None:
    some = fleet(
        worker("off", HALF, on=False, profile=SMALL), worker("on", HALF, profile=SMALL), worker("right", QUARTER)
    )
    steps = {
        name: [type(step).__name__ for step in plan(some, provision_wish(some, CATALOGUE, Provisioning())).of(name)]
        for name in some.workers
    }
    assert steps["off"] == ["Attach"]
    assert steps["on"] == ["Cordon", "ShutDown", "Attach", "MarkAsleep", "PowerOn", "WaitBack", "Uncordon"]
    assert steps["right"] == []


def test_a_vm_whose_memory_is_not_reserved_is_not_equipped() -> None:
    some = fleet(worker("a", on=False, memory_locked=False))
    wish = provision_wish(some, CATALOGUE, Provisioning())
    assert [type(step) for step in plan(some, wish)] == [Attach]


def test_facts_that_people_select_by_are_labels_too() -> None:
    some = fleet(worker("a"), worker("b", WHOLE, on=False), worker("c", on=False, vgpus=(QUARTER, QUARTER)))
    steps = plan(some, label_wish(some, CATALOGUE)).steps
    labels = {step.worker: dict(step.labels) for step in steps if isinstance(step, Label)}
    assert len(labels) == len(steps)
    common = {CARD: "V100-16", HOST: "esx-1"}
    assert labels["a"] == {LABEL: SMALL, VGPU: QUARTER, FRAME: "4096", **common}
    assert labels["b"] == {LABEL: "v100-16q-16GB", VGPU: WHOLE, FRAME: "16384", **common}
    assert labels["c"] == {LABEL: None, VGPU: QUARTER, FRAME: "4096", **common}


def test_only_what_is_wrong_is_written_and_others_labels_stay() -> None:
    said = {LABEL: SMALL, VGPU: QUARTER, FRAME: "4096", CARD: "V100-16", HOST: "esx-9", "team": "vision"}
    some = fleet(worker("a", node=node("a", labels=said)))
    (step,) = plan(some, label_wish(some, CATALOGUE))
    assert step.requests(some, "") == (PatchNode(node="a", labels={HOST: "esx-1"}),)
    after = step.applied_to(some)
    assert not plan(after, label_wish(after, CATALOGUE))
    assert node_of(after, "a").labels["team"] == "vision"


def test_labels_are_pruned_only_from_nodes_that_bear_our_facts_and_only_when_asked() -> None:
    stray = worker("gone", vgpus=(), node=node("gone", labels={LABEL: SMALL, VGPU: QUARTER, "team": "vision"}))
    some = fleet(worker("a", node=node("a", labels=LABELLED)), strays={"gone": stray})
    assert not plan(some, label_wish(some, CATALOGUE))
    (step,) = plan(some, label_wish(some, CATALOGUE, prune=True))
    (patch,) = step.requests(some, "")
    assert patch == PatchNode(node="gone", labels={LABEL: None, VGPU: None})
    assert broken_by(patch, some) == ""
    assert broken_by(PatchNode(node="gone", labels={LABEL: SMALL}), some)
    assert broken_by(PatchNode(node="else", labels={LABEL: None}), some)
    after = step.applied_to(some)
    assert node_of(after, "gone").labels == {"team": "vision"}
    assert not plan(after, label_wish(after, CATALOGUE, prune=True))


WAVE = tuple(f"w{n}" for n in range(5))


def restarts(some: Fleet, at_most: int) -> list[list[str]]:
    """Carry a provision out wave by wave; who was out together each time."""
    waves = []
    while todo := plan(some, provision_wish(some, CATALOGUE, Provisioning(max_unavailable=at_most))):
        out = {step.subject for step in todo.ready()}
        out |= {name for name in some.workers if node_of(some, name).unschedulable}
        waves.append(sorted(out))
        some = todo.applied_to(some, [todo.of(name)[0].id for name in out])
    return waves


@pytest.mark.parametrize("at_most", [1, 2, 3, 5])
def test_no_more_than_so_many_workers_are_out_at_once(at_most: int) -> None:
    some = fleet(*(worker(name, memory_locked=False) for name in WAVE[:4]))
    waves = restarts(some, at_most)
    assert max(map(len, waves)) == min(at_most, 4)
    assert {name for wave in waves for name in wave} == set(WAVE[:4])


def test_workers_that_swap_cards_go_together_or_not_at_all() -> None:
    """Four quarters become two halves and two without: nobody can come back before all four are gone."""
    wanted = ("v100-8q-8GB", "v100-8q-8GB", "none", "none")
    some = fleet(*(worker(name, profile=profile) for name, profile in zip(WAVE, wanted, strict=False)))
    few, enough = (provision_wish(some, CATALOGUE, Provisioning(max_unavailable=n)) for n in (3, 4))
    (refusal,) = refusals(some, few)
    assert "all 4 must be out at once" in refusal.message
    assert "--max-unavailable 4" in refusal.hint
    assert refusals(some, enough) == ()
    assert restarts(some, 4)[0] == list(WAVE[:4])


@pytest.mark.parametrize(
    ("one", "other", "given"),
    [
        # Everybody is off and one is changed already: a card has one size, so all are as before.
        ({"on": False, "vgpus": (HALF,)}, {"on": False}, {"one": (QUARTER,)}),
        # One runs with its new vGPU, and with it the card has the new size: the other must have it too.
        ({"vgpus": (HALF,)}, {"on": False}, {"other": (HALF,)}),
        # They fit as they are.
        ({"on": False, "vgpus": (HALF,)}, {"on": False, "vgpus": (HALF,)}, {}),
    ],
)
def test_on_the_way_back_those_who_are_off_carry_what_lets_them_come_back(
    one: dict[str, Any], other: dict[str, Any], given: dict[str, tuple[str, ...]]
) -> None:
    profile = "v100-8q-8GB"
    before = fleet(worker("one", profile=profile), worker("other", profile=profile))
    former = former_wish(provision_wish(before, CATALOGUE, Provisioning(max_unavailable=2)))
    now = fleet(worker("one", profile=profile, **one), worker("other", profile=profile, **other))
    wishes = with_devices_back(now, former).workers
    assert {name: mine.vgpus for name, mine in wishes.items() if mine.vgpus is not None} == given
