"""Drains over the simulated cluster, in virtual time: volumes, stubborn pods, budgets and namespaces that end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from tests.support.runs import Errand
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.requests import Evict
from vgpuctl.model.selectors import parse_selector
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.sim.inventory import Durations, default_inventory

CORE = "/api/v1/namespaces/default"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
FORCED = DrainOptions(force=True)
DAY = {f"worker-{n}" for n in range(1, 5)}


@pytest.fixture
def day() -> Rehearsal:
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations())
    rehearsal.wait(60)
    rehearsal.drain(FORCED)
    return rehearsal


def bare(day: Rehearsal, name: str, node: str = "worker-1", space: str = "default", **spec: Any) -> str:
    """Its UID, once it runs."""
    given = {"nodeName": node, "containers": [{"name": "main", "image": "one"}], **spec}
    path = f"/api/v1/namespaces/{space}/pods"
    made = day.kubectl("POST", path, {"metadata": {"name": name, "labels": {"app": name}}, "spec": given})
    day.wait(5)
    return str(made["metadata"]["uid"])


def writer(day: Rehearsal, name: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    day.kubectl("POST", f"{CORE}/persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec})
    bare(day, name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}])


def hanging(day: Rehearsal) -> list[str]:
    return [item["spec"]["nodeName"] for item in day.world.kubernetes.store.all("volumeattachments")]


def budget(day: Rehearsal, name: str, app: str, **limit: Any) -> None:
    spec = {**limit, "selector": {"matchLabels": {"app": app}}}
    day.kubectl("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})
    day.wait(1)


def test_no_vm_falls_asleep_with_the_volumes_of_gone_pods(day: Rehearsal) -> None:
    writer(day, "data")
    assert hanging(day) == ["worker-1"]

    def look(fleet: Fleet) -> None:
        assert not (fleet.worker("worker-1").busy_with and hanging(day))

    day.watch = look
    assert day.switch("night").finished
    assert (day.awake(), hanging(day), day.broken) == ({"worker-5"}, [], [])


def test_the_volumes_of_pods_that_stay_are_not_waited_for(day: Rehearsal) -> None:
    day.drain(DrainOptions(pod_selector=parse_selector("app!=keeper")))
    writer(day, "keeper")
    assert day.switch("night").finished
    assert (day.awake(), hanging(day), day.broken) == ({"worker-5"}, ["worker-1"], [])


def test_a_volume_that_does_not_come_off_goes_back_and_is_named(day: Rehearsal) -> None:
    writer(day, "data")
    (item,) = day.world.kubernetes.store.all("volumeattachments")
    stuck = {"metadata": {"finalizers": ["external-attacher/csi"]}}
    day.kubectl("PATCH", f"/apis/storage.k8s.io/v1/volumeattachments/{item['metadata']['name']}", stuck)
    ended = day.switch("night")
    assert "volume default/data still attached" in str(ended.state.going_back["esx-1"])
    assert (day.awake(), day.broken) == (DAY, [])


def test_a_pod_that_cannot_end_is_waited_for_only_so_long(day: Rehearsal) -> None:
    day.drain(DrainOptions(force=True, timeout_s=300, skip_wait_for_delete_timeout_s=60))
    bare(day, "stubborn")
    day.kubectl("PATCH", f"{CORE}/pods/stubborn", {"metadata": {"finalizers": ["example.test/held"]}})
    assert day.switch("night").finished
    assert (day.awake(), day.broken) == ({"worker-5"}, [])
    day.kubectl("PATCH", f"{CORE}/pods/stubborn", {"metadata": {"finalizers": None}})


def test_without_that_it_is_waited_for_until_the_drain_is_over(day: Rehearsal) -> None:
    day.drain(DrainOptions(force=True, timeout_s=300))
    bare(day, "stubborn")
    day.kubectl("PATCH", f"{CORE}/pods/stubborn", {"metadata": {"finalizers": ["example.test/held"]}})
    ended = day.switch("night")
    assert "1 pod to go: stubborn should have ended 2" in str(ended.state.going_back["esx-1"])
    assert day.awake() == DAY


def test_two_budgets_on_one_pod_end_the_drain_after_a_few_tries(day: Rehearsal) -> None:
    """The second comes while the drain is under way, so it could not be foreseen."""
    uid = bare(day, "twice")
    budget(day, "one", "twice", minAvailable=0)

    def second(_: object) -> None:
        if any(key.startswith("Cordon") for key in day.sent) and not hasattr(day, "late"):
            day.late = True  # type: ignore[attr-defined]
            budget(day, "two", "twice", minAvailable=0)

    day.watch = second
    ended = day.switch("night")
    assert "twice is under several budgets, one and two" in str(ended.state.going_back["esx-1"])
    assert 1 < day.sent.count(f"Drain/worker-1/{uid}") <= 5
    assert day.awake() == DAY


def test_pods_of_a_namespace_that_ends_are_waited_for(day: Rehearsal) -> None:
    day.kubectl("POST", "/api/v1/namespaces", {"metadata": {"name": "lab"}})
    uid = bare(day, "last", space="lab")
    day.kubectl("DELETE", "/api/v1/namespaces/lab")
    assert day.switch("night").finished
    assert (day.awake(), day.broken) == ({"worker-5"}, [])
    assert day.sent.count(f"Drain/worker-1/{uid}") <= 2


def test_a_pod_that_took_over_a_name_is_not_evicted_for_another(day: Rehearsal) -> None:
    bare(day, "same")
    (seen,) = [pod for pod in day.fleet().worker("worker-1").node.pods if pod.name == "same"]  # type: ignore[union-attr]
    day.kubectl("DELETE", f"{CORE}/pods/same")
    day.wait(60)
    bare(day, "same", node="infra-1")
    day.carry(Errand(Evict(pod=seen)))
    day.wait(60)
    assert day.kubectl("GET", f"{CORE}/pods/same")["spec"]["nodeName"] == "infra-1"


def frozen(day: Rehearsal, name: str) -> str:
    """Its UID. It asks to sleep with its VM, and tolerates that its node is silent."""
    silence = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    spec = {
        "nodeName": "worker-1",
        "containers": [{"name": "main", "image": "one"}],
        "tolerations": [{"key": key, "operator": "Exists", "effect": "NoExecute"} for key in silence],
    }
    meta = {"name": name, "annotations": {"vgpuctl.io/on-switch": "freeze"}}
    made = day.kubectl("POST", f"{CORE}/pods", {"metadata": meta, "spec": spec})
    day.wait(5)
    return str(made["metadata"]["uid"])


def test_a_frozen_pod_goes_on_after_a_night_as_if_nothing_had_been(day: Rehearsal) -> None:
    uid = frozen(day, "bert")
    assert day.switch("night").finished
    assert day.awake() == {"worker-5"}
    day.wait(12 * 3600)
    assert day.switch("day").finished
    day.wait(60)
    pod = day.kubectl("GET", f"{CORE}/pods/bert")
    assert (pod["metadata"]["uid"], pod["spec"]["nodeName"], pod["status"]["phase"]) == (uid, "worker-1", "Running")
    assert [container["restartCount"] for container in pod["status"]["containerStatuses"]] == [0]
    assert not any(uid in key for key in day.sent)
    assert (day.awake(), day.broken) == (DAY, [])


def test_a_worker_whose_node_was_deleted_meanwhile_is_not_put_to_sleep(day: Rehearsal) -> None:
    """Its pods run on, and nobody can see them."""
    day.drain(DrainOptions(timeout_s=60))

    def look(fleet: Fleet) -> None:
        node = fleet.worker("worker-1").node
        if node and node.unschedulable:
            day.kubectl("DELETE", "/api/v1/nodes/worker-1")

    day.watch = look
    ended = day.switch("night")
    assert "its node is gone" in str(ended.state.going_back["esx-1"])
    assert "Suspend/worker-1/" not in day.sent
    assert day.awake() >= DAY
