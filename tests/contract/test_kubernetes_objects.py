"""Objects over plain HTTP: lists, watches, versions, patches. The same answers from our API server and a real one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.peers.clusters import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Cluster,
    Object,
    budget,
    condition,
    deployment,
    pod,
)
from tests.support.quantities import NO_QUANTITIES, QUANTITIES


def config_map(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "data": {"key": "value"}}


@pytest.fixture
def maps(cluster: Cluster) -> str:
    """The path of five maps: a to e, every second one odd."""
    path = cluster.path("configmaps")
    for number, name in enumerate("abcde"):
        cluster.create(path, config_map(name, parity="odd" if number % 2 else "even"))
    return path


def names(cluster: Cluster, path: str) -> list[str]:
    found = [item["metadata"]["name"] for item in cluster.get(path)["items"]]
    return [name for name in found if name != "kube-root-ca.crt"]


def test_lists_come_in_pages(cluster: Cluster, maps: str) -> None:
    seen: list[str] = []
    page = cluster.get(f"{maps}?limit=2")
    assert page["metadata"]["remainingItemCount"] >= 3
    seen += [item["metadata"]["name"] for item in page["items"]]
    while token := page["metadata"].get("continue"):
        page = cluster.get(f"{maps}?limit=2&continue={token}")
        seen += [item["metadata"]["name"] for item in page["items"]]
    assert sorted(set(seen) - {"kube-root-ca.crt"}) == list("abcde")
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("labelSelector=parity%3Dodd", "bd"),
        ("labelSelector=parity%20notin%20(odd)%2Cparity", "ace"),
        ("labelSelector=parity!%3Deven%2Cparity", "bd"),
        ("labelSelector=none", ""),
        ("fieldSelector=metadata.name%3Dc", "c"),
        ("fieldSelector=metadata.name!%3Dc,metadata.name!%3Dkube-root-ca.crt", "abde"),
    ],
)
def test_selectors(cluster: Cluster, maps: str, selector: str, found: str) -> None:
    assert names(cluster, f"{maps}?{selector}") == list(found)


REFUSALS: dict[str, tuple[str, str, Any, int, str]] = {
    "no such object": ("GET", "configmaps/nobody", None, 404, "NotFound"),
    "no such resource": ("GET", "things", None, 404, ""),
    "the same name again": ("POST", "configmaps", config_map("a"), 409, "AlreadyExists"),
    "another kind": (
        "POST",
        "configmaps",
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}},
        400,
        "BadRequest",
    ),
    "no name": ("POST", "configmaps", {"metadata": {}}, 422, "Invalid"),
    "a bad name": ("POST", "configmaps", {"metadata": {"name": "A b"}}, 422, "Invalid"),
    "a bad label": ("POST", "configmaps", config_map("x", key="not ok!"), 422, "Invalid"),
    "data of a wrong type": ("POST", "configmaps", {"metadata": {"name": "x"}, "data": 1}, 400, "BadRequest"),
    "not JSON": ("POST", "configmaps", b"{bad", 400, "BadRequest"),
    "POST to an object": ("POST", "configmaps/a", {}, 405, "MethodNotAllowed"),
    "an unknown field": ("GET", "configmaps?fieldSelector=spec.none%3Da", None, 400, "BadRequest"),
    "a bad selector": ("GET", "configmaps?labelSelector=a,,!!", None, 400, "BadRequest"),
    "a bad page": ("GET", "configmaps?limit=1&continue=abc", None, 400, "BadRequest"),
    "a bad limit": ("GET", "configmaps?limit=x", None, 400, "BadRequest"),
}


@pytest.mark.parametrize("asked", REFUSALS.values(), ids=REFUSALS)
def test_refusals(cluster: Cluster, maps: str, asked: tuple[str, str, Any, int, str]) -> None:
    method, rest, body, code, reason = asked
    answer = cluster.http(method, f"{maps.removesuffix('configmaps')}{rest}", body)
    if reason:
        answer.refused(code, reason)
    assert answer.code == code


@pytest.mark.parametrize("path", ["/api/v1/pods", "/apis/apps/v1/deployments", "/api/v1/namespaces"])
def test_nothing_is_deleted_in_all_namespaces_at_once(cluster: Cluster, path: str) -> None:
    cluster.http("DELETE", f"{path}?labelSelector=none").refused(405, "MethodNotAllowed")


def test_nothing_is_created_without_a_namespace(cluster: Cluster) -> None:
    cluster.http("POST", "/api/v1/pods", pod("nowhere")).refused(405, "MethodNotAllowed")


def asks_for(cpu: object) -> Object:
    return pod("asks", containers=[{"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu}}}])


def test_quantities_are_stored_in_their_canonical_form(cluster: Cluster) -> None:
    for sent, stored in QUANTITIES.items():
        made = cluster.http("POST", f"{cluster.path('pods')}?dryRun=All", asks_for(sent)).ok()
        assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": stored}, sent


def test_what_is_no_quantity_is_refused(cluster: Cluster) -> None:
    for sent in NO_QUANTITIES:
        assert cluster.http("POST", cluster.path("pods"), asks_for(sent)).refused(400, "BadRequest"), sent
    refusal = cluster.http("POST", cluster.path("pods"), asks_for("-1")).refused(422, "Invalid")
    assert_refused_for(refusal, "spec.containers[0].resources.requests[cpu]", "must be greater than or equal to 0")


STRATEGIES: dict[str, tuple[Object, Object, str]] = {
    "none": ({}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}, "False"),
    "some": (
        {"rollingUpdate": {"maxUnavailable": "100%"}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%", "maxSurge": "25%"}},
        "True",
    ),
    "Recreate": ({"type": "Recreate"}, {"type": "Recreate"}, "False"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_deployment_is_available_within_its_own_max_unavailable(cluster: Cluster, strategy: str) -> None:
    """Of two pods that never run."""
    sent, stored, available = STRATEGIES[strategy]
    asked = deployment("shop", 2, nodeSelector={"none": "none"})
    asked["spec"]["strategy"] = sent
    path = cluster.path("deployments", group="apps")
    assert cluster.create(path, asked)["spec"]["strategy"] == stored
    cluster.until(lambda: condition(cluster.get(f"{path}/shop"), "Available") == available)


def test_without_the_token_nothing_is_told(cluster: Cluster, maps: str) -> None:
    cluster.http("GET", maps, Authorization="Bearer wrong").refused(401, "Unauthorized")


def test_a_stale_write_is_a_conflict(cluster: Cluster, maps: str) -> None:
    old = cluster.get(f"{maps}/a")
    cluster.patch(f"{maps}/a", {"data": {"key": "new"}})
    refusal = cluster.http("PUT", f"{maps}/a", old).refused(409, "Conflict")
    assert "the object has been modified" in refusal["message"]
    version = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}}
    cluster.http("PATCH", f"{maps}/a", version, MERGE).refused(409, "Conflict")
    cluster.http("DELETE", f"{maps}/a", {"preconditions": {"uid": "another"}}).refused(409, "Conflict")


def test_a_write_that_changes_nothing_makes_no_version(cluster: Cluster, maps: str) -> None:
    before = cluster.get(f"{maps}/a")["metadata"]["resourceVersion"]
    assert cluster.patch(f"{maps}/a", {"data": {"key": "value"}})["metadata"]["resourceVersion"] == before
    assert cluster.patch(f"{maps}/a", {"data": {"key": "new"}})["metadata"]["resourceVersion"] != before


PATCHES: dict[str, tuple[str, Any, int]] = {
    "merge": (MERGE, {"metadata": {"labels": {"parity": None, "new": "x"}}}, 200),
    "strategic merge": (STRATEGIC, {"data": {"more": "x"}}, 200),
    "JSON": (JSON_PATCH, [{"op": "add", "path": "/metadata/labels/a~1b", "value": "c"}], 200),
    "JSON, test that holds": (JSON_PATCH, [{"op": "test", "path": "/data/key", "value": "value"}], 200),
    "JSON, test that fails": (JSON_PATCH, [{"op": "test", "path": "/data/key", "value": "x"}], 422),
    "JSON, no such path": (JSON_PATCH, [{"op": "remove", "path": "/data/none"}], 422),
    "JSON, not a list": (JSON_PATCH, {"op": "add"}, 400),
    "merge, not an object": (MERGE, [1], 400),
    "another name": (MERGE, {"metadata": {"name": "other"}}, 400),
    "no metadata": (MERGE, {"metadata": None}, 400),
    "a strategic patch of a wrong type": (STRATEGIC, {"data": "x"}, 422),
    "a wrong type": (MERGE, {"data": "x"}, 422),
    "an unknown patch": ("application/x-unknown", {}, 415),
}


@pytest.mark.parametrize("asked", PATCHES.values(), ids=PATCHES)
def test_patches(cluster: Cluster, maps: str, asked: tuple[str, Any, int]) -> None:
    content_type, patch, code = asked
    answer = cluster.http("PATCH", f"{maps}/a", patch, content_type)
    assert answer.code == code, answer.body


def test_a_strategic_patch_merges_lists_by_their_key_and_a_merge_patch_replaces_them(cluster: Cluster) -> None:
    path = cluster.path("deployments", group="apps")
    cluster.create(path, deployment("two", 0))
    more = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    merged = cluster.patch(f"{path}/two", more, STRATEGIC)["spec"]["template"]["spec"]["containers"]
    assert {one["name"] for one in merged} == {"main", "side"}
    replaced = cluster.patch(f"{path}/two", more, MERGE)["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in replaced] == ["side"]


def test_a_dry_run_answers_and_changes_nothing(cluster: Cluster, maps: str) -> None:
    assert cluster.http("POST", f"{maps}?dryRun=All", config_map("f")).ok()["metadata"]["uid"]
    assert cluster.patch(f"{maps}/a?dryRun=All", {"data": {"key": "dry"}})["data"]["key"] == "dry"
    cluster.http("DELETE", f"{maps}/b?dryRun=All").ok()
    assert names(cluster, maps) == list("abcde")
    assert cluster.get(f"{maps}/a")["data"] == {"key": "value"}


def test_a_watch_goes_on_from_a_version_and_follows_its_selector(cluster: Cluster, maps: str) -> None:
    start = cluster.get(maps)["metadata"]["resourceVersion"]
    cluster.patch(f"{maps}/a", {"metadata": {"labels": {"parity": "odd"}}})
    path = f"{maps}?watch=true&resourceVersion={start}&labelSelector=parity%3Dodd&timeoutSeconds=30"
    with cluster.watch(path) as events:
        assert _told(next(events)) == ("ADDED", "a")
        cluster.patch(f"{maps}/a", {"data": {"key": "new"}})
        assert _told(next(events)) == ("MODIFIED", "a")
        left = cluster.patch(f"{maps}/a", {"metadata": {"labels": {"parity": "even"}}})
        gone = next(events)
        assert _told(gone) == ("DELETED", "a")
        assert gone["object"]["metadata"]["labels"] == {"parity": "odd"}, "as it was when it was last selected"
        assert gone["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
        cluster.http("DELETE", f"{maps}/b").ok()
        assert _told(next(events)) == ("DELETED", "b")


def test_a_watch_without_a_version_begins_with_what_is_there(cluster: Cluster, maps: str) -> None:
    with cluster.watch(f"{maps}?watch=true&labelSelector=parity%3Dodd&timeoutSeconds=30") as events:
        assert {_told(next(events)) for _ in "bd"} == {("ADDED", "b"), ("ADDED", "d")}


def test_a_watch_can_begin_with_all_and_a_bookmark(cluster: Cluster, maps: str) -> None:
    options = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=30"
    with cluster.watch(f"{maps}?watch=true&labelSelector=parity&{options}") as events:
        assert {_told(next(events)) for _ in "abcde"} == {("ADDED", name) for name in "abcde"}
        bookmark = next(events)
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_ends_when_its_time_is_up(cluster: Cluster, maps: str) -> None:
    """Of these maps: a real cluster puts its own into each namespace at any moment."""
    start = cluster.get(maps)["metadata"]["resourceVersion"]
    path = f"{maps}?watch=true&labelSelector=parity&resourceVersion={start}&timeoutSeconds=1&allowWatchBookmarks=true"
    with cluster.watch(path) as events:
        assert {event["type"] for event in events} <= {"BOOKMARK"}


def test_a_watch_from_before_the_compaction_is_told_to_list_anew(cluster: Cluster, maps: str) -> None:
    cluster.machines.compact()
    path = f"{cluster.path('persistentvolumeclaims')}?watch=true&resourceVersion=1&timeoutSeconds=20"
    with cluster.watch(path) as events:
        only = next(events)
    assert (only["type"], only["object"]["code"], only["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_a_version_that_is_to_come_is_waited_for_in_vain(cluster: Cluster, maps: str) -> None:
    cluster.http("GET", f"{maps}?resourceVersion=999999999").refused(504, "Timeout")


UNTOLD: dict[str, tuple[str, str, Object, Object]] = {
    "Deployment": ("apps", "deployments", {}, {}),
    "ReplicaSet": ("apps", "replicasets", {}, {"replicas": 0}),
    "StatefulSet": ("apps", "statefulsets", {"serviceName": "none"}, {"replicas": 0, "availableReplicas": 0}),
    "DaemonSet": (
        "apps",
        "daemonsets",
        {},
        {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0},
    ),
    "Job": ("batch", "jobs", {"suspend": True, "selector": None}, {}),
}


@pytest.mark.parametrize("kind", UNTOLD)
def test_a_new_workload_shows_what_no_controller_has_told_yet(cluster: Cluster, kind: str) -> None:
    group, plural, more, status = UNTOLD[kind]
    asked = deployment("fresh", 0, nodeSelector={"none": "none"}, restartPolicy="Never" if kind == "Job" else "Always")
    asked |= {"kind": kind, "apiVersion": f"{group}/v1"}
    asked["spec"] |= more
    if kind in ("DaemonSet", "Job"):
        del asked["spec"]["replicas"]
    assert cluster.create(cluster.path(plural, group=group), asked)["status"] == status


def test_the_status_is_written_by_its_own_door(cluster: Cluster) -> None:
    path = cluster.path("deployments", group="apps")
    cluster.create(path, deployment("still", 0, nodeSelector={"none": "none"}))
    assert cluster.patch(f"{path}/still", {"status": {"replicas": 7}})["status"].get("replicas", 0) == 0
    changed = cluster.patch(f"{path}/still/status", {"spec": {"replicas": 3}, "status": {"observedGeneration": 1}})
    assert changed["spec"]["replicas"] == 0


def test_scaling_by_its_own_door(cluster: Cluster) -> None:
    path = cluster.path("deployments", group="apps")
    cluster.create(path, deployment("many", 1, nodeSelector={"none": "none"}))
    scale = cluster.get(f"{path}/many/scale")
    assert (scale["kind"], scale["apiVersion"], scale["spec"]["replicas"]) == ("Scale", "autoscaling/v1", 1)
    assert scale["status"]["selector"] == "app=many"
    assert cluster.patch(f"{path}/many/scale", {"spec": {"replicas": 2}})["spec"]["replicas"] == 2
    assert cluster.get(f"{path}/many")["spec"]["replicas"] == 2
    cluster.until(lambda: len(cluster.pods("app=many")) == 2)
    stale = scale | {"spec": {"replicas": 5}}
    cluster.http("PUT", f"{path}/many/scale", stale).refused(409, "Conflict")


def test_a_finalizer_holds_what_is_deleted(cluster: Cluster, maps: str) -> None:
    cluster.patch(f"{maps}/a", {"metadata": {"finalizers": ["example.test/held"]}})
    marked = cluster.http("DELETE", f"{maps}/a").ok()
    assert marked["metadata"]["deletionTimestamp"]
    cluster.patch(f"{maps}/a", {"metadata": {"finalizers": None}})
    cluster.http("GET", f"{maps}/a").refused(404, "NotFound")


DELETED: dict[str, tuple[str, str, Object]] = {
    "PersistentVolumeClaim": (
        "",
        "persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    "ResourceQuota": ("", "resourcequotas", {"spec": {"hard": {"pods": "5"}}}),
    "Service": ("", "services", {"spec": {"ports": [{"port": 80}]}}),
    "Pod": ("", "pods", pod("one", nodeSelector={"none": "none"})),
    "ConfigMap": ("", "configmaps", {}),
    "Lease": ("coordination.k8s.io", "leases", {}),
    "Deployment": ("apps", "deployments", deployment("one", 0)),
}


@pytest.mark.parametrize("kind", DELETED)
def test_a_deletion_answers_with_the_object_or_a_status_by_its_kind(cluster: Cluster, kind: str) -> None:
    group, plural, body = DELETED[kind]
    path = cluster.path(plural, group=group)
    cluster.create(path, {"metadata": {"name": "one"}} | body)
    expected = "Status" if kind in ("ConfigMap", "Lease", "Deployment") else kind
    for query in ("?dryRun=All", ""):
        assert cluster.http("DELETE", f"{path}/one{query}").ok()["kind"] == expected


@pytest.mark.parametrize("asked_s", [-1, -30])
def test_a_grace_period_below_zero_is_a_second(cluster: Cluster, asked_s: int) -> None:
    cluster.create(cluster.path("pods"), pod("one", nodeName="worker-1", terminationGracePeriodSeconds=30))
    gone = cluster.http("DELETE", cluster.path("pods", "one"), {"gracePeriodSeconds": asked_s}).ok()
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 1
    own = cluster.create(cluster.path("pods"), pod("two", terminationGracePeriodSeconds=asked_s))
    assert own["spec"]["terminationGracePeriodSeconds"] == 1


JOBS: list[tuple[Object, int, int | None]] = [
    ({}, 1, 1),
    ({"parallelism": 3}, 3, None),
    ({"completions": 4}, 1, 4),
    ({"parallelism": 0}, 0, None),
]


@pytest.mark.parametrize(("sent", "parallelism", "completions"), JOBS)
def test_the_defaults_of_a_job(cluster: Cluster, sent: Object, parallelism: int, completions: int | None) -> None:
    template = {"spec": pod("one", restartPolicy="Never")["spec"]}
    job = {"metadata": {"name": "one"}, "spec": sent | {"template": template, "suspend": True}}
    spec = cluster.create(cluster.path("jobs", group="batch"), job)["spec"]
    assert (spec["parallelism"], spec.get("completions")) == (parallelism, completions)


def test_both_forms_of_an_event(cluster: Cluster) -> None:
    involved = {"kind": "ConfigMap", "name": "a", "namespace": cluster.namespace}
    told = {
        "metadata": {"name": "told"},
        "involvedObject": involved,
        "reason": "Told",
        "message": "hello",
        "type": "Normal",
    }
    cluster.create(cluster.path("events"), told)
    newer = cluster.get(cluster.path("events", "told", "events.k8s.io"))
    assert (newer["note"], newer["regarding"]["name"], newer["reason"]) == ("hello", "a", "Told")


@pytest.mark.parametrize("involved", ["", "default", "kube-system"], ids=["none", "default", "another"])
def test_an_event_is_in_the_namespace_of_its_object(cluster: Cluster, involved: str) -> None:
    about = {"kind": "Node", "name": "worker-1", **({"namespace": involved} if involved else {})}
    said = {"involvedObject": about, "reason": "Told", "message": "hello", "type": "Warning"}
    elsewhere = cluster.http("POST", cluster.path("events"), {"metadata": {"name": "told"}, **said})
    status = elsewhere.refused(422, "Invalid")
    assert [(c["field"], c["message"]) for c in status["details"]["causes"]] == [
        ("involvedObject.namespace", f'Invalid value: "{involved}": does not match event.namespace')
    ]
    there = cluster.http("POST", "/api/v1/namespaces/default/events", {"metadata": {"generateName": "told-"}, **said})
    assert there.code == (422 if involved == "kube-system" else 201)


def test_the_life_of_a_lease(cluster: Cluster) -> None:
    path = cluster.path("leases", group="coordination.k8s.io")
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-01-05T00:00:00.000000Z"}
    lease = cluster.create(path, {"metadata": {"name": "acting"}, "spec": spec})
    cluster.http("POST", path, {"metadata": {"name": "acting"}}).refused(409, "AlreadyExists")
    mine = lease | {"spec": spec | {"holderIdentity": "two", "renewTime": "2026-01-05T00:00:01.500000Z"}}
    taken = cluster.http("PUT", f"{path}/acting", mine).ok()
    assert (taken["spec"]["holderIdentity"], taken["spec"]["renewTime"]) == ("two", "2026-01-05T00:00:01.500000Z")
    cluster.http("PUT", f"{path}/acting", mine).refused(409, "Conflict")


def test_a_pod_must_name_its_containers(cluster: Cluster) -> None:
    refusal = cluster.http("POST", cluster.path("pods"), pod("none", containers=[])).refused(422, "Invalid")
    assert refusal["details"]["causes"][0]["field"] == "spec.containers"


NO_BUDGETS: dict[str, tuple[Object, str, str]] = {
    "both limits": (
        {"minAvailable": 1, "maxUnavailable": 1},
        "spec",
        "minAvailable and maxUnavailable cannot be both set",
    ),
    "a negative limit": ({"minAvailable": -1}, "spec.minAvailable", "-1: must be greater than or equal to 0"),
    "more than all": ({"maxUnavailable": "101%"}, "spec.maxUnavailable", '"101%": must not be greater than 100%'),
    "no share": ({"minAvailable": "some"}, "spec.minAvailable", "regex used for validation is '[0-9]+%')"),
    "an unknown policy": (
        {"minAvailable": 1, "unhealthyPodEvictionPolicy": "Sometimes"},
        "spec.unhealthyPodEvictionPolicy",
        'Unsupported value: "Sometimes": supported values: "AlwaysAllow", "IfHealthyBudget"',
    ),
}


@pytest.mark.parametrize(("limits", "field", "why"), NO_BUDGETS.values(), ids=NO_BUDGETS)
def test_budgets_that_are_none(cluster: Cluster, limits: Object, field: str, why: str) -> None:
    path = cluster.path("poddisruptionbudgets", group="policy")
    refusal = cluster.http("POST", path, budget("none", "none", **limits)).refused(422, "Invalid")
    assert_refused_for(refusal, field, why)
    made = cluster.create(path, budget("one", "one", maxUnavailable=1))
    change = {"spec": {"maxUnavailable": None} | limits}
    assert_refused_for(cluster.http("PATCH", f"{path}/one", change, MERGE).refused(422, "Invalid"), field, why)
    assert cluster.get(f"{path}/one")["spec"] == made["spec"]


@pytest.mark.parametrize(("kind", "by"), [("Deployment", "strategy"), ("DaemonSet", "updateStrategy")])
def test_only_a_deployment_may_grow_by_more_than_all(cluster: Cluster, kind: str, by: str) -> None:
    path = cluster.path(f"{kind.lower()}s", group="apps")
    asked = deployment("changes", 0, nodeSelector={"none": "none"}) | {"kind": kind}
    if kind == "DaemonSet":
        del asked["spec"]["replicas"]
    spec = f"spec.{by}.rollingUpdate"

    def limited(**limits: str | int) -> Object:
        return asked | {"spec": asked["spec"] | {by: {"type": "RollingUpdate", "rollingUpdate": limits}}}

    refusal = cluster.http("POST", path, limited(maxUnavailable="101%", maxSurge=0)).refused(422, "Invalid")
    assert_refused_for(refusal, f"{spec}.maxUnavailable", "must not be greater than 100%")
    grows = cluster.http("POST", path, limited(maxUnavailable=0, maxSurge="101%"))
    if kind == "Deployment":
        grows.ok()
    else:
        assert_refused_for(grows.refused(422, "Invalid"), f"{spec}.maxSurge", "must not be greater than 100%")


def assert_refused_for(refusal: Object, field: str, why: str) -> None:
    (cause,) = refusal["details"]["causes"]
    assert (cause["field"], cause["message"].endswith(why)) == (field, True), cause


def _told(event: Object) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]
