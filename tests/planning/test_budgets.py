"""Budgets that can never be met are foreseen, but only where that is certain: a slow exhaustive reckoning agrees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fleets import (
    CATALOGUE,
    WHOLE,
    fleet,
    night_wish,
    node,
    pod,
    timetable,
    with_node,
    with_worker,
    worker,
)
from vgpuctl.kube.views import needs_of
from vgpuctl.model.conduct import Conduct, OnStuck
from vgpuctl.model.fleet import Fleet, Node, Power
from vgpuctl.model.places import Needs, Taint, Toleration
from vgpuctl.model.pods import Budget, Pod
from vgpuctl.model.selectors import Selector
from vgpuctl.operations import look_ahead
from vgpuctl.planning.checks.refusals import refusals
from vgpuctl.planning.pods.budgets import dead_ends
from vgpuctl.planning.wishes import Provisioning, provision_wish, switch_wish

GPU = Needs(requests=(("nvidia.com/gpu", 1000),), labels=(("vgpu.type", "v100-4q-4GB"),))
GIVES = (("nvidia.com/gpu", 1000),)
LABELS = {"vgpu.type": "v100-4q-4GB"}


def notebook(name: str, on: str, **more: Any) -> Pod:
    return pod(name, on, **{"labels": {"app": "notebook"}, "needs": GPU, **more})


def limit(desired: int, expected: int = 4, allowed: int = 0) -> Budget:
    covers = Selector({"app": "notebook"})
    return Budget(namespace="default", name="pace", allowed=allowed, covers=covers, desired=desired, expected=expected)


def by_day(desired: int = 3, *elsewhere: Node, **more: Any) -> Fleet:
    """Four workers with a GPU and a notebook each, and who else is there."""
    names = [f"worker-{n}" for n in range(1, 5)]
    inside = {
        name: node(name, pods=(notebook(f"on-{name}", name, **more),), gives=GIVES, labels=LABELS) for name in names
    }
    night = worker("worker-5", WHOLE, power=Power.SUSPENDED, node=node("worker-5", gives=GIVES, unschedulable=True))
    workers = [worker(name, node=inside[name]) for name in names]
    return fleet(*workers, night, budgets=(limit(desired),), elsewhere=elsewhere)


def ends(some: Fleet) -> list[bool]:
    """Of each dead end: is it certain?"""
    return [end.certain for end in dead_ends(some, night_wish(some))]


def spare(**more: Any) -> Node:
    return node("spare", **{"gives": (("nvidia.com/gpu", 4000),), "labels": LABELS, **more})


def test_the_normal_case_of_a_night_is_refused_with_the_ways_out() -> None:
    some = by_day()
    wish = night_wish(some)
    (refusal,) = refusals(some, wish)
    assert refusal.message.startswith("worker-[1-4] can never be drained together: budget pace keeps 3 of 4 pods, and")
    assert len(refusal.details) == 4
    assert "Scale the workload to zero" in refusal.hint
    assert not look_ahead(some, wish).plan


def test_a_budget_that_wants_no_pod_or_finds_places_is_no_dead_end() -> None:
    assert ends(by_day(0)) == []
    assert ends(by_day(3, spare())) == []


@pytest.mark.parametrize(
    "doubt",
    [
        spare(unschedulable=True),
        spare(ready=False, gives=()),
        spare(keeps_off=(Taint("node.kubernetes.io/disk-pressure"),)),
        spare(pods=(pod("trains", owner="Job/bert", needs=replace(GPU, requests=(("nvidia.com/gpu", 4000),))),)),
        spare(pods=(pod("weak", needs=replace(GPU, priority=-1, requests=(("nvidia.com/gpu", 4000),))),)),
        spare(gives=(), labels={**LABELS, "nvidia.com/gpu.present": "true"}),
        node("other", autoscaled=True),
    ],
)
def test_what_could_make_a_place_makes_it_a_remark(doubt: Node) -> None:
    assert ends(by_day(3, doubt)) == [False]


@pytest.mark.parametrize(
    "no_place",
    [
        spare(labels={}),
        spare(gives=()),
        spare(keeps_off=(Taint("dedicated", "team-a"),)),
        spare(pods=(pod("steady", needs=replace(GPU, requests=(("nvidia.com/gpu", 2000),))),)),
    ],
)
def test_what_is_no_place_leaves_it_certain(no_place: Node) -> None:
    assert ends(by_day(3, no_place)) == [True]


def test_where_stuck_pods_are_deleted_by_force_it_is_no_refusal_but_said() -> None:
    some = by_day()
    forced = replace(night_wish(some), conduct=Conduct(on_stuck=OnStuck.FORCE))
    preview = look_ahead(some, forced)
    assert preview.refusals == ()
    assert preview.plan
    (remark,) = preview.remarks
    assert remark.message.endswith("Its pods are deleted at the deadline.")


def test_a_budget_that_lets_no_pod_go_is_one_whatever_places_there_are() -> None:
    some = by_day(4, spare(autoscaled=True))
    assert ends(some) == [True]
    (refusal,) = refusals(some, night_wish(some))
    assert "budget pace lets none of its 4 pods go" in refusal.message


@pytest.mark.parametrize("more", [{"owner": None}, {"owner": "Job/some"}, {"owner": "Notebook/mine"}])
def test_pods_that_end_or_come_back_otherwise_are_no_certainty(more: dict[str, Any]) -> None:
    assert ends(by_day(3, **more)) == [False]


def test_what_is_not_known_is_not_said() -> None:
    assert ends(by_day(3, needs=None)) == []
    assert ends(by_day(3, ready=False)) == []
    assert ends(replace(by_day(3), budgets=(replace(limit(3), seen=False),))) == []
    assert ends(replace(by_day(3), budgets=(limit(3, expected=5),))) == [False]


def test_one_that_the_same_night_wakes_is_a_place_unless_it_needs_the_drained_card() -> None:
    anywhere = replace(GPU, labels=())
    assert ends(by_day(3, needs=anywhere)) == [True]
    some = by_day(3, needs=anywhere)
    moved = with_worker(some, "worker-5", host="esx-2")
    hosts = {
        **some.hosts,
        "esx-2": replace(
            some.hosts["esx-1"],
            name="esx-2",
            cards=tuple(replace(card, holds=()) for card in some.hosts["esx-1"].cards),
        ),
    }
    assert ends(replace(moved, hosts=hosts)) == [False]


def test_a_rollout_in_waves_looks_at_each_worker_alone() -> None:
    some = by_day(3)
    changed = replace(some, workers={n: replace(w, profile="v100-8q-8GB") for n, w in some.workers.items()})
    together = list(dead_ends(changed, provision_wish(changed, CATALOGUE, Provisioning())))
    assert [len(end.workers) for end in together] == [4]
    one_by_one = provision_wish(changed, CATALOGUE, Provisioning(max_unavailable=1))
    assert list(dead_ends(changed, one_by_one)) == []
    strict = replace(changed, budgets=(limit(4),))
    assert [len(end.workers) for end in dead_ends(strict, one_by_one)] == [1, 1, 1, 1]


def test_a_host_that_is_refused_for_another_reason_stays_a_place() -> None:
    """Its workers stay awake, so it is not certain any more that the others' pods have nowhere to go."""
    small = Needs(labels=GPU.labels)
    pods = tuple(notebook(name, "worker-1", needs=small) for name in ("one", "two"))
    here = worker("worker-1", node=node("worker-1", pods=pods, labels=LABELS))
    there = worker(
        "worker-2", host="esx-2", node=node("worker-2", pods=(pod("bare", owner=None, needs=small),), labels=LABELS)
    )
    some = fleet(here, there, budgets=(limit(1, expected=2, allowed=1),))
    wish = switch_wish(some, CATALOGUE, timetable(day=("worker-1", "worker-2"), rest=()), "rest")
    assert {refusal.host for refusal in refusals(some, wish)} == {"esx-2"}
    freed = with_node(some, "worker-2", pods=())
    assert {refusal.host for refusal in refusals(freed, wish)} == {"esx-1"}


@dataclass(frozen=True)
class Case:
    """Leaving pods by their kinds; for each node that stays how much it has, whom it takes, and what is there."""

    leaving: tuple[int, ...]
    outside: int
    desired: int
    kinds: tuple[Needs, ...]
    places: tuple[Node, ...]


def possible(case: Case) -> bool:
    """Try everything: evict whoever the budget lets go, place whoever waits wherever there is room. The world is kind:
    cordons are lifted, nodes come back with all that one may wish, and pods that can end have ended."""
    free = tuple(_free(place) for place in case.places)

    @cache
    def reach(left: tuple[int, ...], waiting: tuple[int, ...], room: tuple[int, ...]) -> bool:
        if not any(left):
            return True
        total = sum(case.leaving) + case.outside
        for kind in range(len(left)):
            may_go = left[kind] and total - sum(waiting) - 1 >= case.desired
            if may_go and reach(_plus(left, kind, -1), _plus(waiting, kind, 1), room):
                return True
            for at, place in enumerate(case.places) if waiting[kind] else ():
                asked = dict(case.kinds[kind].requests).get("cpu", 0)
                goes = _takes(place, case.kinds[kind]) and room[at] >= asked
                if goes and reach(left, _plus(waiting, kind, -1), _plus(room, at, -asked)):
                    return True
        return False

    return reach(case.leaving, tuple(0 for _ in case.leaving), free)


def _plus(numbers: tuple[int, ...], at: int, more: int) -> tuple[int, ...]:
    return (*numbers[:at], numbers[at] + more, *numbers[at + 1 :])


def _free(place: Node) -> int:
    if not place.ready:
        return 1_000_000
    stays = [p for p in place.pods if (p.owner or "").startswith("ReplicaSet/")]
    return dict(place.gives)["cpu"] - sum(dict(p.needs.requests)["cpu"] for p in stays if p.needs)


def _takes(place: Node, needs: Needs) -> bool:
    tolerated = all(Toleration(taint.key, "Exists") in needs.tolerations for taint in place.keeps_off)
    return tolerated and all(place.labels.get(key) == value for key, value in needs.labels)


KINDS = st.builds(
    lambda cpu, pool, tolerant: Needs(
        requests=(("cpu", cpu * 1000),),
        labels=(("pool", pool),) if pool else (),
        tolerations=(Toleration("dedicated", "Exists"),) if tolerant else (),
    ),
    st.integers(1, 2),
    st.sampled_from(["", "a", "b"]),
    st.booleans(),
)


def place(cpu: int, pool: str, *, tainted: bool, ready: bool, cordoned: bool, there: tuple[str, ...]) -> Node:
    one = Needs(requests=(("cpu", 1000),))
    return node(
        "place",
        ready=ready,
        unschedulable=cordoned,
        gives=(("cpu", cpu * 1000),),
        labels={"pool": pool},
        keeps_off=(Taint("dedicated"),) if tainted else (),
        pods=tuple(pod(f"there-{n}", owner=owner, needs=one) for n, owner in enumerate(there)),
    )


PLACES = st.builds(
    place,
    st.integers(0, 3),
    st.sampled_from("ab"),
    tainted=st.booleans(),
    ready=st.sampled_from([True, True, True, False]),
    cordoned=st.sampled_from([False, False, True]),
    there=st.sampled_from([(), ("ReplicaSet/r",), ("Job/j",)]),
)


@st.composite
def cases(draw: st.DrawFn, kinds: int = 2) -> Case:
    leaving = tuple(draw(st.integers(0, 3)) for _ in range(draw(st.integers(1, kinds))))
    outside = draw(st.integers(0, 2))
    desired = draw(st.integers(0, sum(leaving) + outside))
    shapes = tuple(draw(KINDS) for _ in leaving)
    return Case(leaving, outside, desired, shapes, tuple(draw(st.lists(PLACES, max_size=3))))


def certain(case: Case) -> bool:
    pods = [
        notebook(f"p{kind}-{n}", "w", needs=case.kinds[kind])
        for kind, number in enumerate(case.leaving)
        for n in range(number)
    ]
    home = node(
        "home",
        pods=tuple(notebook(f"o{n}", "home", needs=case.kinds[0]) for n in range(case.outside)),
        keeps_off=(Taint("nobody"),),
    )
    places = tuple(replace(each, name=f"place-{n}") for n, each in enumerate(case.places))
    expected = len(pods) + case.outside
    some = fleet(
        worker("w", node=node("w", pods=tuple(pods))),
        budgets=(limit(case.desired, expected, allowed=expected - case.desired),),
        elsewhere=(home, *places),
    )
    wish = switch_wish(some, CATALOGUE, timetable(day=("w",), rest=()), "rest")
    return any(end.certain for end in dead_ends(some, wish))


@given(case=cases())
def test_what_is_certain_no_way_leads_out_of(case: Case) -> None:
    assert not (certain(case) and possible(case))


@given(case=cases(kinds=1))
def test_of_pods_that_are_all_alike_every_dead_end_is_found(case: Case) -> None:
    assert certain(case) is not possible(case)


def test_a_pods_needs_are_shared_by_all_that_look_alike() -> None:
    spec = {
        "nodeSelector": {"pool": "a"},
        "containers": [{"resources": {"requests": {"cpu": "500m"}}}, {"resources": {"requests": {"cpu": "1"}}}, {}],
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]},
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                        {},
                    ]
                }
            }
        },
    }
    needs = needs_of(spec)
    assert needs is needs_of({**spec, "containers": list(spec["containers"])})
    assert dict(needs.requests) == {"cpu": 1500}
    assert needs.choose("n1", {"pool": "a"})
    assert needs.choose("n2", {"pool": "a", "zone": "x"})
    assert not needs.choose("n2", {"pool": "a"})
    assert not needs.choose("n1", {"zone": "x"})
    assert needs.tolerate(Taint("dedicated", "x"))
    assert not needs.tolerate(Taint("other"))
