"""Which pods hold a switch back while they run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.fleets import fleet, node, pod, timetable, worker
from vgpuctl.kube.views import pod as pod_view
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.pods import DO_NOT_DISRUPT, SAFE_TO_EVICT, Pod
from vgpuctl.model.selectors import parse_selector
from vgpuctl.model.timing import HoldWhile, PodSelector
from vgpuctl.planning.pods.holding import holding

TRAINING = PodSelector(selector=parse_selector("app=training"), namespace="team-*")
JOB: dict[str, Any] = {"namespace": "team-a", "labels": {"app": "training"}, "owner": "Job/bert"}


def worker_with(name: str, *pods: Pod, on: bool = True) -> Any:
    return worker(name, on=on, node=node(name, pods=pods))


def held_by(some: Fleet, hold: HoldWhile, *workers: str) -> list[str]:
    table = replace(timetable(night=("worker-5",)), hold_while=hold)
    return [each.name for each in holding(some, table, workers)]


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ({}, True),
        ({"namespace": "teams"}, False),
        ({"labels": {"app": "inference"}}, False),
        ({"labels": {"app": "inference"}, "not_now": (SAFE_TO_EVICT, DO_NOT_DISRUPT)}, True),
        ({"namespace": "other", "not_now": (SAFE_TO_EVICT,)}, False),
        ({"terminating": True}, False),
        ({"phase": "Pending"}, False),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"owner": "DaemonSet/agent"}, False),
        ({"owner": "Node/worker-1", "mirror": True}, False),
        ({"ready": False}, True),
        ({"owner": None}, True),
    ],
    ids=str,
)
def test_a_pod_holds_while_it_runs_if_its_labels_or_its_annotation_are_named(
    changes: dict[str, Any], held: bool
) -> None:
    hold = HoldWhile(pods=(TRAINING,), annotations=frozenset({DO_NOT_DISRUPT}))
    some = fleet(worker_with("worker-1", pod("bert", **(JOB | changes))))
    assert held_by(some, hold, "worker-1") == ["bert"] * held


def test_only_pods_on_the_given_workers_that_are_awake_hold() -> None:
    some = fleet(
        worker_with("worker-1", pod("one", **JOB), pod("two", **JOB)),
        worker_with("worker-2", pod("three", **JOB)),
        worker_with("worker-3", pod("four", **JOB), on=False),
        worker("worker-4", node=None),
    )
    hold = HoldWhile(pods=(TRAINING,))
    assert held_by(some, hold, "worker-2", "worker-1") == ["three", "one", "two"]
    assert held_by(some, hold, "worker-3", "worker-4", "unknown") == []


def test_nothing_holds_if_nothing_is_named() -> None:
    some = fleet(worker_with("worker-1", pod("bert", not_now=(DO_NOT_DISRUPT,), **JOB)))
    assert held_by(some, HoldWhile(), "worker-1") == []


def test_each_of_two_annotations_of_a_real_pod_holds() -> None:
    asks = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
    meta = {"namespace": "n", "name": "bert", "uid": "u", "annotations": asks}
    bert = pod_view({"metadata": meta, "spec": {"nodeName": "worker-1"}, "status": {"phase": "Running"}})
    for annotation in (SAFE_TO_EVICT, DO_NOT_DISRUPT):
        hold = HoldWhile(annotations=frozenset({annotation}))
        assert held_by(fleet(worker_with("worker-1", bert)), hold, "worker-1") == ["bert"]
