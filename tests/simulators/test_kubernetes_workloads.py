"""Where pods go, how long they live, and who makes new ones."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.kubernetes_cluster import (
    BEGAN,
    DAY,
    DAY_PROFILE,
    MERGE,
    NIGHT,
    NIGHT_PROFILE,
    PODS,
    Cluster,
    the_condition,
)
from vgpuctl.sim.kube.controllers.queue import REACTION_S
from vgpuctl.sim.kube.objects import at, is_true, name_of, uid_of
from vgpuctl.sim.world import World


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(World(began=BEGAN))


@pytest.fixture
def day() -> Cluster:
    return Cluster.by_day()


def test_gateway_comes_with_the_day_workers_and_spreads_over_them(day: Cluster) -> None:
    placed = Counter(day.where("gateway").values())
    assert len(placed) == 3
    assert set(placed) < set(DAY)
    assert day.budget()["disruptionsAllowed"] == 1


def test_gateway_waits_for_the_last_day_worker(cluster: Cluster) -> None:
    for name in DAY[:3]:
        cluster.kubernetes.boot(name, 1)
    cluster.wait(60)
    assert cluster.pods("gateway") == []
    cluster.kubernetes.boot(DAY[3], 1)
    cluster.wait(10)
    assert len(cluster.pods("gateway")) == 3


def test_gpu_pods_wait_for_the_label_of_their_profile(day: Cluster) -> None:
    assert set(day.where("notebooks").values()) == {None}
    waiting = the_condition(day.pods("notebooks")[0], "PodScheduled")
    assert waiting["reason"] == "Unschedulable"
    assert waiting["message"].startswith(
        "0/6 nodes are available: 1 node(s) had untolerated taint(s), 5 node(s) didn't"
    )
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    assert day.nodes_of("notebooks") == sorted(DAY)
    assert all(is_true(pod, "Ready") for pod in day.pods("notebooks"))


def test_a_full_card_is_named_as_the_reason(day: Cluster) -> None:
    day.label(DAY_PROFILE, *DAY[:3])
    day.wait(5)
    waiting = [pod for pod in day.pods("notebooks") if not at(pod, "spec.nodeName")]
    assert len(waiting) == 1
    assert "3 Insufficient nvidia.com/gpu" in the_condition(waiting[0], "PodScheduled")["message"]


def test_a_cordon_is_named_as_the_reason(day: Cluster) -> None:
    day.cordon("infra-1", *DAY)
    day.ask("DELETE", f"/api/v1/namespaces/default/pods/{name_of(day.pods('gateway')[0])}")
    day.wait(1)
    waiting = [pod for pod in day.pods("gateway") if not at(pod, "spec.nodeName")]
    said = the_condition(waiting[0], "PodScheduled")["message"]
    assert said.startswith("0/6 nodes are available: 1 node(s) had untolerated taint(s), 5 node(s) were unschedulable.")


def test_spreading_counts_for_more_than_load(day: Cluster) -> None:
    """The one day worker without a gateway gets the next, however busy it is."""
    (free,) = set(DAY) - set(day.where("gateway").values())
    busy = [{"name": "main", "resources": {"requests": {"cpu": "7"}}}]
    day.ask("POST", PODS, {"metadata": {"name": "busy"}, "spec": {"nodeName": free, "containers": busy}})
    day.cordon("infra-1")
    scale = "/apis/apps/v1/namespaces/default/deployments/gateway/scale"
    day.ask("PATCH", scale, {"spec": {"replicas": 4}}, content_type=MERGE)
    day.wait(1)
    assert set(day.where("gateway").values()) == set(DAY)


def test_a_job_keeps_to_its_parallelism_and_its_completions(day: Cluster) -> None:
    spec = {"restartPolicy": "Never", "containers": [{"name": "main"}]}
    job = {"parallelism": 2, "completions": 3, "suspend": True, "template": {"spec": spec}}
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    day.ask("POST", jobs, {"metadata": {"name": "sweep"}, "spec": job})
    day.wait(5)
    assert day.pods("sweep") == []
    day.ask("PATCH", f"{jobs}/sweep", {"spec": {"suspend": False}}, content_type=MERGE)
    day.wait(5)
    assert len(day.pods("sweep")) == 2
    day.wait(3600)
    assert Counter(pod["status"]["phase"] for pod in day.pods("sweep")) == {"Succeeded": 2, "Running": 1}
    day.wait(3600)
    assert is_true(day.ask("GET", f"{jobs}/sweep"), "Complete")


def test_the_job_waits_for_its_profile_runs_and_succeeds(day: Cluster) -> None:
    day.kubernetes.boot(NIGHT, 1)
    day.wait(5)
    assert set(day.where("training").values()) == {None}
    day.label(NIGHT_PROFILE, NIGHT)
    day.wait(5)
    assert set(day.where("training").values()) == {NIGHT}
    day.wait(3600)
    assert day.pods("training")[0]["status"]["phase"] == "Succeeded"
    job = day.ask("GET", "/apis/batch/v1/namespaces/default/jobs/training")
    assert is_true(job, "Complete")
    assert at(job, "status.succeeded") == 1


def test_an_evicted_job_pod_is_made_anew_and_starts_over(day: Cluster) -> None:
    day.kubernetes.boot(NIGHT, 1)
    day.label(NIGHT_PROFILE, NIGHT)
    day.wait(1800)
    first = day.pods("training")[0]
    day.ask(*day.eviction(first))
    day.wait(1805)
    second = day.pods("training")[0]
    assert uid_of(second) != uid_of(first)
    assert second["status"]["phase"] == "Running"


def test_a_frozen_training_goes_on_where_it_was(day: Cluster) -> None:
    day.kubernetes.boot(NIGHT, 1)
    day.label(NIGHT_PROFILE, NIGHT)
    day.wait(1800)
    before = uid_of(day.pods("training")[0])
    day.kubernetes.freeze(NIGHT)
    day.wait(250)
    day.kubernetes.thaw(NIGHT)
    day.wait(1790)
    assert day.pods("training")[0]["status"]["phase"] == "Running"
    day.wait(20)
    (pod,) = day.pods("training")
    assert (pod["status"]["phase"], uid_of(pod)) == ("Succeeded", before)


def test_what_was_deleted_takes_along_what_it_owned(day: Cluster) -> None:
    day.ask("DELETE", "/apis/apps/v1/namespaces/default/deployments/gateway")
    day.wait(5)
    assert day.pods("gateway") == []
    assert [name_of(item).split("-")[0] for item in day.kubernetes.store.all("replicasets")] == ["notebooks"]


def test_a_deployment_replaces_a_leaving_pod_at_once_and_follows_its_scale(day: Cluster) -> None:
    pod = day.pods("gateway")[0]
    day.ask("DELETE", f"/api/v1/namespaces/default/pods/{name_of(pod)}")
    day.wait(2 * REACTION_S)
    assert len(day.pods("gateway")) == 4
    assert len(day.pods("gateway", leaving=False)) == 3
    scale = "/apis/apps/v1/namespaces/default/deployments/gateway/scale"
    assert day.ask("PATCH", scale, {"spec": {"replicas": 0}}, content_type=MERGE)["spec"] == {"replicas": 0}
    day.wait(5)
    assert day.pods("gateway") == []


def test_a_rollout_goes_on_where_a_person_spoiled_a_revision(day: Cluster) -> None:
    apps = "/apis/apps/v1/namespaces/default"
    (old,) = [item for item in day.kubernetes.store.all("replicasets") if name_of(item).startswith("gateway-")]
    spoiled = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "latest"}}}
    day.ask("PATCH", f"{apps}/replicasets/{name_of(old)}", spoiled, content_type=MERGE)
    template = {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}
    day.ask("PATCH", f"{apps}/deployments/gateway", template, content_type=MERGE)
    day.wait(30)
    assert {pod["metadata"]["labels"].get("version") for pod in day.pods("gateway")} == {"2"}


def test_the_end_of_a_pod_waits_for_the_kubelet_and_never_longer_than_its_grace(day: Cluster) -> None:
    quick, slow, _ = day.pods("gateway")
    day.ask("DELETE", f"/api/v1/namespaces/default/pods/{name_of(quick)}", {"gracePeriodSeconds": 1})
    day.ask("DELETE", f"/api/v1/namespaces/default/pods/{name_of(slow)}")
    day.wait(1.2)
    names = {name_of(pod) for pod in day.pods("gateway")}
    assert name_of(quick) not in names
    assert name_of(slow) in names
    day.wait(0.5)
    assert name_of(slow) not in {name_of(pod) for pod in day.pods("gateway")}
