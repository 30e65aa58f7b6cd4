"""Gates, schedulers, init containers and deadlines of pods, of our Kubernetes and of a real one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.peers.clusters import MERGE, Cluster, Object, condition, pod

GATES = [{"name": "example.test/one"}, {"name": "example.test/two"}]


def reason(item: Object) -> tuple[str, str]:
    found = (one for one in item["status"].get("conditions") or () if one["type"] == "PodScheduled")
    return next(((one["status"], one.get("reason") or "") for one in found), ("", ""))


def test_gates_hold_a_pod_and_only_go(cluster: Cluster) -> None:
    path = cluster.path("pods", "gated")
    made = cluster.create(cluster.path("pods"), pod("gated", schedulingGates=GATES, nodeSelector={"a": "b"}))
    assert reason(made) == ("False", "SchedulingGated")
    more = [*GATES, {"name": "example.test/three"}]
    refusal = cluster.http("PATCH", path, {"spec": {"schedulingGates": more}}, MERGE).refused(422, "Invalid")
    why = "Forbidden: only deletion is allowed, but found new scheduling gate 'example.test/three'"
    assert one_cause(refusal) == ("spec.schedulingGates[2].name", why)
    assert cluster.patch(path, {"spec": {"nodeSelector": {"c": "d"}}})["spec"]["nodeSelector"] == {"a": "b", "c": "d"}
    cluster.http("PATCH", path, {"spec": {"nodeSelector": {"a": None}}}, MERGE).refused(422, "Invalid")
    assert reason(cluster.patch(path, {"spec": {"schedulingGates": GATES[:1]}})) == ("False", "SchedulingGated")
    shown = cluster.kubectl("get", "pod", "gated", "--namespace", cluster.namespace, "--no-headers").stdout
    assert shown.split()[:3] == ["gated", "0/1", "SchedulingGated"]
    cluster.patch(path, {"spec": {"schedulingGates": None}})
    cluster.until(lambda: reason(cluster.get(path)) == ("False", "Unschedulable"), what="the scheduler has seen it")


def test_another_schedulers_pod_is_left_to_it(cluster: Cluster) -> None:
    cluster.create(cluster.path("pods"), pod("other", schedulerName="volcano"))
    cluster.create(cluster.path("pods"), pod("later"))
    cluster.until_running("app=later", 1)
    left = cluster.get(cluster.path("pods", "other"))
    assert (left["status"]["phase"], left["spec"].get("nodeName")) == ("Pending", None)
    assert not left["status"].get("conditions")


def test_init_containers_and_sidecars_need_room_on_the_node(cluster: Cluster) -> None:
    cpus = float(cluster.node("worker-1")["status"]["allocatable"]["cpu"])

    def asking(share: float, **more: Any) -> Object:
        requests = {"cpu": f"{round(cpus * share * 1000)}m"}
        name = f"c{round(share * 100)}{'s' if more else ''}"
        return {"name": name, "image": "one", "resources": {"requests": requests}, **more}

    cases = {
        "one-after-another": ([asking(0.6), asking(0.5)], [asking(0.55)], True),
        "too-large": ([asking(1.1)], [asking(0.1)], False),
        "sidecar-stays": ([asking(0.6, restartPolicy="Always")], [asking(0.5)], False),
        "sidecar-first": ([asking(0.6, restartPolicy="Always"), asking(0.5)], [asking(0.1)], False),
        "sidecar-last": ([asking(0.6), asking(0.5, restartPolicy="Always")], [asking(0.1)], True),
    }
    for name, (inits, containers, fits) in cases.items():
        cluster.create(cluster.path("pods"), pod(name, initContainers=inits, containers=containers))
        assert judged(cluster, name) is fits, name


def judged(cluster: Cluster, name: str) -> bool:
    """Whether the scheduler finds room for the pod, which then goes, so that the next one finds the nodes empty."""
    path = cluster.path("pods", name)
    status: str = cluster.until(lambda: condition(cluster.get(path), "PodScheduled"), what=f"{name} is judged")
    cluster.http("DELETE", path, {"gracePeriodSeconds": 0}).ok()
    cluster.until(lambda: cluster.http("GET", path).code == 404, what=f"{name} is gone")
    return status == "True"


def test_a_pod_fails_when_it_was_active_for_longer_than_it_may(cluster: Cluster) -> None:
    cluster.create(cluster.path("pods"), pod("timed", activeDeadlineSeconds=60))
    path = cluster.path("pods", "timed")
    cluster.until_running("app=timed", 1)
    cluster.patch(path, {"spec": {"activeDeadlineSeconds": 2}})
    cluster.until(lambda: cluster.get(path)["status"]["phase"] == "Failed", what="the deadline has passed")
    status = cluster.get(path)["status"]
    assert status["reason"] == "DeadlineExceeded"
    assert status["message"] == "Pod was active on the node longer than the specified deadline"


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (50, "Invalid value: 50: must be less than or equal to previous value"),
        (None, "Invalid value: null: must not update from a positive integer to nil value"),
    ],
)
def test_a_deadline_only_comes_nearer(cluster: Cluster, limit: int | None, why: str) -> None:
    cluster.create(cluster.path("pods"), pod("timed", activeDeadlineSeconds=40, nodeSelector={"none": "none"}))
    change = {"spec": {"activeDeadlineSeconds": limit}}
    refusal = cluster.http("PATCH", cluster.path("pods", "timed"), change, MERGE).refused(422, "Invalid")
    assert one_cause(refusal) == ("spec.activeDeadlineSeconds", why)


REFUSED: list[tuple[Object, str, str]] = [
    (
        {"activeDeadlineSeconds": 0},
        "spec.activeDeadlineSeconds",
        "Invalid value: 0: must be between 1 and 2147483647, inclusive",
    ),
    ({"schedulingGates": GATES[:1] * 2}, "spec.schedulingGates[1]", 'Duplicate value: "example.test/one"'),
    (
        {"schedulingGates": GATES, "nodeName": "worker-1"},
        "spec.nodeName",
        "Forbidden: cannot be set until all schedulingGates have been cleared",
    ),
    ({"initContainers": [{"name": "main", "image": "i"}]}, "spec.initContainers[0].name", 'Duplicate value: "main"'),
]


@pytest.mark.parametrize(("spec", "field", "why"), REFUSED)
def test_fields_that_make_no_sense_are_named(cluster: Cluster, spec: Object, field: str, why: str) -> None:
    refusal = cluster.http("POST", cluster.path("pods"), pod("odd", **spec)).refused(422, "Invalid")
    assert one_cause(refusal) == (field, why)


def one_cause(refusal: Object) -> tuple[str, str]:
    (cause,) = refusal["details"]["causes"]
    return cause["field"], cause["message"]
