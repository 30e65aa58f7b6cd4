"""Objects, versions and watches: what every client of the API builds on."""

from __future__ import annotations

import pytest

from tests.support.kubernetes_cluster import DAY, DAY_PROFILE, MERGE, NIGHT_PROFILE, PODS, Cluster, taints
from vgpuctl.sim.kube.objects import Object, name_of


@pytest.fixture
def day() -> Cluster:
    return Cluster.by_day()


def test_a_second_cordon_changes_nothing_and_a_stale_write_is_refused(day: Cluster) -> None:
    day.cordon("worker-1")
    day.wait(0)
    first = day.node("worker-1")["metadata"]["resourceVersion"]
    day.cordon("worker-1")
    node = day.node("worker-1")
    assert node["metadata"]["resourceVersion"] == first
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") in taints(node)
    day.label(DAY_PROFILE, "worker-1")
    assert day.refused("PUT", "/api/v1/nodes/worker-1", node).code == 409


def test_a_dry_run_changes_nothing(day: Cluster) -> None:
    version = day.kubernetes.store.version
    dry = {"dryRun": "All"}
    pod = day.pods("gateway")[0]
    method, path, body = day.eviction(pod)
    day.ask(method, path, body, query=dry)
    day.ask("DELETE", f"/api/v1/namespaces/default/pods/{name_of(pod)}", query=dry)
    patched = day.ask(
        "PATCH", "/api/v1/nodes/worker-1", {"spec": {"unschedulable": True}}, content_type=MERGE, query=dry
    )
    assert patched["spec"]["unschedulable"]
    day.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "journal"}}, query=dry)
    assert day.kubernetes.store.version == version


def test_managed_fields_tell_who_scaled(day: Cluster) -> None:
    scale = "/apis/apps/v1/namespaces/default/deployments/gateway/scale"
    day.ask("PATCH", scale, {"spec": {"replicas": 5}}, content_type=MERGE, query={"fieldManager": "keda"})
    deployment = day.ask("GET", "/apis/apps/v1/namespaces/default/deployments/gateway")
    owners = {entry["manager"]: entry["fieldsV1"] for entry in deployment["metadata"]["managedFields"]}
    assert owners["keda"] == {"f:spec": {"f:replicas": {}}}


def test_a_watch_follows_a_selector_and_goes_on_from_a_version(day: Cluster) -> None:
    start = str(day.kubernetes.store.version)
    day.label(DAY_PROFILE, "worker-1")
    watch = day.watch("/api/v1/nodes", labelSelector=f"vgpu.type={DAY_PROFILE}", resourceVersion=start)
    day.cordon("worker-1")
    left = day.patch_node("worker-1", {"metadata": {"labels": {"vgpu.type": NIGHT_PROFILE}}, "spec": {"taints": []}})
    events = watch.take()
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    *_, cordoned, gone = (event.object for event in events)
    version = {"resourceVersion": left["metadata"]["resourceVersion"]}
    assert gone == cordoned | {"metadata": cordoned["metadata"] | version}, "as it was last seen, at the new version"


def test_a_watch_from_before_the_compaction_is_told_to_list_anew(day: Cluster) -> None:
    start = str(day.kubernetes.store.version - 5)
    day.kubernetes.store.compact()
    watch = day.watch("/api/v1/nodes", resourceVersion=start)
    (event,) = watch.take()
    assert (event.type, event.object["code"], event.object["reason"], watch.ended) == ("ERROR", 410, "Expired", True)


def test_a_watch_can_begin_with_all_objects_and_a_bookmark(day: Cluster) -> None:
    options = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    watch = day.watch("/api/v1/nodes", timeoutSeconds="90", **options)
    *nodes, bookmark = watch.take()
    assert [event.type for event in nodes] == ["ADDED"] * 6
    assert bookmark.object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    day.wait(100)
    assert watch.ended
    assert "BOOKMARK" in {event.type for event in watch.take()}


def test_the_same_seed_gives_the_same_world_and_another_another() -> None:
    def run(seed: int) -> list[Object]:
        cluster = Cluster.by_day(seed=seed)
        cluster.label(DAY_PROFILE, *DAY)
        cluster.wait(600)
        return [*cluster.kubernetes.store.sorted("pods"), *cluster.kubernetes.store.sorted("events")]

    assert run(7) == run(7) != run(8)


def test_an_idle_hour_is_a_few_heartbeats(day: Cluster) -> None:
    day.wait(60)
    before = day.kubernetes.store.version
    day.wait(3600)
    changes = day.kubernetes.store.version - before
    beats = 5 * 360
    # A Lease and a status each, and the events of the first minutes that expire.
    assert changes <= 2 * beats + 100


@pytest.mark.parametrize(("asked_s", "given_s"), [(-1, 1), (-30, 1), (0, 0), (5, 5), (None, 30)])
def test_a_grace_period_below_zero_is_a_second(day: Cluster, asked_s: int | None, given_s: int) -> None:
    spec = {"containers": [{"name": "main", "image": "one"}], "nodeName": "worker-1"}
    day.ask("POST", PODS, {"metadata": {"name": "one"}, "spec": spec})
    day.kubernetes.freeze("worker-1")
    options = {} if asked_s is None else {"gracePeriodSeconds": asked_s}
    gone = day.ask("DELETE", f"{PODS}/one", options)
    assert gone["metadata"].get("deletionGracePeriodSeconds", 0) == given_s
    assert (day.kubernetes.store.get("pods", "default", "one") is None) is (given_s == 0)


def test_a_pods_own_grace_period_below_zero_is_a_second(day: Cluster) -> None:
    spec = {"containers": [{"name": "main", "image": "one"}], "terminationGracePeriodSeconds": -3}
    made = day.ask("POST", PODS, {"metadata": {"name": "one"}, "spec": spec})
    assert made["spec"]["terminationGracePeriodSeconds"] == 1


@pytest.mark.parametrize("query", [{}, {"dryRun": "All"}])
def test_a_deletion_answers_with_the_object_or_a_status_by_its_kind(day: Cluster, query: dict[str, str]) -> None:
    answers = {}
    for kind in ("PersistentVolumeClaim", "ResourceQuota", "Service", "ConfigMap"):
        path = f"/api/v1/namespaces/default/{kind.lower()}s"
        day.ask("POST", path, {"metadata": {"name": "one"}, "spec": {}} | ({"data": {}} if kind == "ConfigMap" else {}))
        answers[kind] = day.ask("DELETE", f"{path}/one", query=query)["kind"]
    assert answers == {kind: "Status" if kind == "ConfigMap" else kind for kind in answers}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ({}, (1, 1)),
        ({"parallelism": 3}, (3, None)),
        ({"completions": 4}, (1, 4)),
        ({"completions": 4, "parallelism": 2}, (2, 4)),
        ({"parallelism": 0}, (0, None)),
    ],
)
def test_the_defaults_of_a_job(day: Cluster, sent: Object, stored: tuple[int, int | None]) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "one"}], "restartPolicy": "Never"}}
    path = "/apis/batch/v1/namespaces/default/jobs"
    job = day.ask("POST", path, {"metadata": {"name": "one"}, "spec": sent | {"template": template, "suspend": True}})
    assert (job["spec"]["parallelism"], job["spec"].get("completions")) == stored
