"""The owners of pods are told before these leave, in few words and few calls."""

from __future__ import annotations

from tests.support.fleets import day_and_night, night_wish, pod, with_node
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.pods import Freeze
from vgpuctl.planning.planner import plan
from vgpuctl.reporting.notices import MOST, notices


def told(fleet: Fleet) -> list[tuple[str, str]]:
    wish = night_wish(fleet)
    return [(f"{n.subject.kind}/{n.subject.name}", n.message) for n in notices(fleet, wish, plan(fleet, wish))]


def test_one_notice_for_each_owner_and_one_for_a_pod_that_nothing_owns() -> None:
    some, _ = day_and_night()
    for n in range(1, 5):
        some = with_node(some, f"worker-{n}", pods=(pod(f"web-{n}", owner="ReplicaSet/web"),))
    some = with_node(some, "worker-1", pods=(pod("bare", owner=None), pod("gone", terminating=True)))
    assert told(some) == [
        ("Pod/bare", "night begins on worker-1: bare will be evicted."),
        ("ReplicaSet/web", "night begins on 3 workers: web-2, web-3, web-4 will be evicted."),
    ]


def test_who_is_frozen_is_told_that() -> None:
    some, _ = day_and_night()
    bert = pod("bert", owner="Job/bert", freeze=Freeze.READY)
    only = {f"worker-{n}": () for n in range(2, 5)} | {"worker-1": (bert,)}
    for name, pods in only.items():
        some = with_node(some, name, pods=pods)
    assert told(some) == [("Job/bert", "night begins on worker-1: bert will sleep along.")]


def test_a_large_estate_makes_no_more_calls() -> None:
    some, _ = day_and_night()
    some = with_node(some, "worker-1", pods=tuple(pod(f"p{n}", owner=f"Job/j{n}") for n in range(200)))
    assert len(told(some)) == MOST
