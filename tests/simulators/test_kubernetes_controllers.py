"""The controllers: how workloads roll, end and hold on to things, and when sleeping nodes are emptied."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.kubernetes_cluster import DAY, DAY_PROFILE, MERGE, NIGHT, PODS, UNREACHABLE, Cluster, taints
from vgpuctl.sim.kube.api.patches import STRATEGIC
from vgpuctl.sim.kube.objects import Object, at, condition, is_active, is_leaving, is_true, name_of, uid_of

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
def day() -> Cluster:
    return Cluster.by_day()


def template(app: str, **spec: object) -> Object:
    containers = [{"name": "main", "image": "one"}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def workload(app: str, pod: Object | None = None, **spec: object) -> Object:
    given = template(app, **(pod or {}))
    return {"metadata": {"name": app}, "spec": {"selector": {"matchLabels": {"app": app}}, "template": given, **spec}}


def new_image(day: Cluster, path: str) -> None:
    containers = [{"name": "main", "image": "two"}]
    day.ask("PATCH", path, {"spec": {"template": {"spec": {"containers": containers}}}}, content_type=MERGE)


def images(day: Cluster, app: str) -> Counter[str]:
    return Counter(pod["spec"]["containers"][0]["image"] for pod in day.pods(app) if is_active(pod))


def names(day: Cluster, app: str) -> list[str]:
    return [name_of(pod) for pod in day.pods(app)]


def test_a_stateful_set_starts_in_order_and_shrinks_from_the_end(day: Cluster) -> None:
    day.ask("POST", f"{APPS}/statefulsets", workload("db", replicas=3))
    day.wait(0.5)
    assert names(day, "db") == ["db-0"]
    day.wait(10)
    assert names(day, "db") == ["db-0", "db-1", "db-2"]
    day.ask("PATCH", f"{APPS}/statefulsets/db/scale", {"spec": {"replicas": 1}}, content_type=MERGE)
    day.wait(1)
    assert [name_of(pod) for pod in day.pods("db", leaving=False)] == ["db-0", "db-1"]
    day.wait(5)
    assert names(day, "db") == ["db-0"]


def test_a_stateful_pod_comes_back_under_its_name_only_when_the_old_one_is_gone(day: Cluster) -> None:
    day.ask("POST", f"{APPS}/statefulsets", workload("db", replicas=2))
    day.wait(10)
    before = {name_of(pod): uid_of(pod) for pod in day.pods("db")}
    host = day.where("db")["db-1"]
    day.kubernetes.freeze(str(host))
    day.ask("DELETE", f"{PODS}/db-1")
    day.wait(120)
    assert {name_of(pod): uid_of(pod) for pod in day.pods("db")} == before
    day.kubernetes.thaw(str(host))
    day.wait(20)
    after = {name_of(pod): uid_of(pod) for pod in day.pods("db")}
    assert after.keys() == before.keys()
    assert after["db-1"] != before["db-1"]


def test_a_stateful_set_rolls_from_the_last_to_the_first(day: Cluster) -> None:
    day.ask("POST", f"{APPS}/statefulsets", workload("db", replicas=3))
    day.wait(10)
    new_image(day, f"{APPS}/statefulsets/db")
    seen = []
    for _ in range(40):
        day.wait(0.5)
        assert len([pod for pod in day.pods("db") if is_true(pod, "Ready") and not is_leaving(pod)]) >= 2
        seen.append(tuple(pod["spec"]["containers"][0]["image"] for pod in day.pods("db")))
    assert ("one", "one", "two") in seen
    assert seen[-1] == ("two",) * 3


def test_a_daemon_runs_on_each_node_that_it_may_cordoned_or_not(day: Cluster) -> None:
    day.cordon("worker-1")
    day.ask("POST", f"{APPS}/daemonsets", workload("plugin"))
    day.wait(5)
    # The one that sleeps has a NoSchedule taint that no daemon tolerates by itself.
    assert day.nodes_of("plugin") == ["infra-1", *DAY]
    day.patch_node("worker-2", {"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}})
    day.ask("DELETE", f"{PODS}/{next(n for n, node in day.where('plugin').items() if node == 'worker-2')}")
    day.wait(5)
    assert "worker-2" not in day.where("plugin").values()
    status = day.ask("GET", f"{APPS}/daemonsets/plugin")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"]) == (4, 4)


def test_one_sleeper_stalls_a_daemon_rollout_until_it_is_back(day: Cluster) -> None:
    day.ask("POST", f"{APPS}/daemonsets", workload("plugin"))
    day.wait(5)
    day.kubernetes.freeze("worker-1")
    day.wait(60)
    new_image(day, f"{APPS}/daemonsets/plugin")
    day.wait(600)
    assert images(day, "plugin") == {"one": 4}
    day.kubernetes.thaw("worker-1")
    day.wait(60)
    assert images(day, "plugin") == {"two": 5}


def test_daemon_pods_stay_on_a_silent_node(day: Cluster) -> None:
    day.ask("POST", f"{APPS}/daemonsets", workload("plugin"))
    day.wait(5)
    day.kubernetes.freeze("worker-1")
    day.wait(1000)
    assert not any(is_leaving(pod) for pod in day.pods("plugin"))


def test_a_deployment_rolls_within_its_surge_and_its_unavailable(day: Cluster) -> None:
    day.ask("POST", f"{APPS}/deployments", workload("shop", replicas=8))
    day.wait(10)
    new_image(day, f"{APPS}/deployments/shop")
    for _ in range(60):
        day.wait(0.5)
        pods = [pod for pod in day.pods("shop") if is_active(pod)]
        assert len(pods) <= 10
        assert sum(is_true(pod, "Ready") for pod in pods) >= 6
    assert images(day, "shop") == {"two": 8}
    status = day.ask("GET", f"{APPS}/deployments/shop")["status"]
    assert (status["updatedReplicas"], status["availableReplicas"]) == (8, 8)


def test_a_budget_counts_the_two_templates_of_a_rollout_as_one_workload(day: Cluster) -> None:
    day.ask("POST", f"{APPS}/deployments", workload("shop", replicas=8))
    guard = {
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "shop"}}},
    }
    day.ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", guard)
    day.wait(10)
    new_image(day, f"{APPS}/deployments/shop")
    for _ in range(40):
        day.wait(0.5)
        status = day.ask("GET", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/guard")["status"]
        assert (status["expectedPods"], status["desiredHealthy"]) == (8, 4)


def test_a_rollout_that_cannot_start_leaves_the_old_pods_alone(day: Cluster) -> None:
    day.ask("POST", f"{APPS}/deployments", workload("shop", replicas=4))
    day.wait(10)
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"no": "node"}}}}}
    day.ask("PATCH", f"{APPS}/deployments/shop", nowhere, content_type=MERGE)
    day.wait(600)
    assert sum(is_true(pod, "Ready") for pod in day.pods("shop")) == 3


ROLLING = {"type": "RollingUpdate"}


@pytest.mark.parametrize(
    ("strategy", "missing", "available"),
    [
        ({}, 1, True),
        ({}, 2, False),
        (ROLLING | {"rollingUpdate": {"maxUnavailable": 2}}, 2, True),
        (ROLLING | {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}, 1, False),
        (ROLLING | {"rollingUpdate": {"maxUnavailable": "100%"}}, 4, True),
        ({"type": "Recreate"}, 1, False),
    ],
)
def test_a_deployment_is_available_within_its_own_max_unavailable(
    day: Cluster, strategy: Object, missing: int, available: bool
) -> None:
    day.ask("POST", f"{APPS}/deployments", workload("shop", replicas=4, strategy=strategy))
    day.wait(10)
    for pod in day.pods("shop")[:missing]:
        conditions = [{"type": "Ready", "status": "False"}]
        change = {"status": {"conditions": conditions}}
        day.ask("PATCH", f"{PODS}/{name_of(pod)}/status", change, content_type=STRATEGIC)
    day.wait(1)
    assert is_true(day.ask("GET", f"{APPS}/deployments/shop"), "Available") is available


def failing_job(**spec: object) -> Object:
    given = template("work", restartPolicy="Never")
    return {"metadata": {"name": "work"}, "spec": {"template": given, "backoffLimit": 1, **spec}}


def evict_all(day: Cluster, app: str) -> None:
    for pod in day.pods(app, leaving=False):
        if is_active(pod):
            day.ask(*day.eviction(pod))
    day.wait(10)


def test_evictions_of_a_job_count_as_failures(day: Cluster) -> None:
    day.ask("POST", JOBS, failing_job())
    for _ in range(2):
        day.wait(5)
        evict_all(day, "work")
    job = day.ask("GET", f"{JOBS}/work")
    assert (condition(job, "Failed") or {})["reason"] == "BackoffLimitExceeded"
    assert job["status"]["failed"] == 2
    assert not any(map(is_active, day.pods("work")))


def test_a_policy_that_ignores_disruptions_spares_the_backoff_limit(day: Cluster) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    day.ask("POST", JOBS, failing_job(podFailurePolicy={"rules": [rule]}))
    for _ in range(4):
        day.wait(5)
        evict_all(day, "work")
    job = day.ask("GET", f"{JOBS}/work")
    assert condition(job, "Failed") is None
    assert len([pod for pod in day.pods("work") if is_active(pod)]) == 1


def test_a_work_queue_is_done_when_one_pod_has_succeeded_and_none_is_left(day: Cluster) -> None:
    day.ask("POST", JOBS, failing_job(parallelism=3))
    day.wait(5)
    first, *others = day.pods("work")
    assert len(others) == 2
    succeed(day, first)
    job = day.ask("GET", f"{JOBS}/work")
    assert (job["status"]["succeeded"], job["status"]["active"], is_true(job, "Complete")) == (1, 2, False)
    evict_all(day, "work")
    job = day.ask("GET", f"{JOBS}/work")
    assert is_true(job, "Failed"), "two failures are more than its limit, whatever has succeeded"


def test_no_pod_of_a_work_queue_is_replaced_after_a_success(day: Cluster) -> None:
    day.ask("POST", JOBS, failing_job(parallelism=3, backoffLimit=9))
    day.wait(5)
    succeed(day, day.pods("work")[0])
    evict_all(day, "work")
    job = day.ask("GET", f"{JOBS}/work")
    assert (is_true(job, "Complete"), job["status"]["failed"], job["status"]["succeeded"]) == (True, 2, 1)
    assert "completions" not in job["spec"]
    table = day.ask("GET", f"{JOBS}/work", accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    assert table["rows"][0]["cells"][:3] == ["work", "Complete", "1/1 of 3"]


def test_a_job_that_fails_and_succeeds_at_once_has_failed(day: Cluster) -> None:
    day.ask("POST", JOBS, failing_job(activeDeadlineSeconds=30))
    day.wait(29.995)
    succeed(day, day.pods("work")[0])
    job = day.ask("GET", f"{JOBS}/work")
    assert (job["status"]["succeeded"], is_true(job, "Complete")) == (1, False)
    assert (condition(job, "Failed") or {})["reason"] == "DeadlineExceeded"


def succeed(day: Cluster, pod: Object) -> None:
    day.ask("PATCH", f"{PODS}/{name_of(pod)}/status", {"status": {"phase": "Succeeded"}}, content_type=MERGE)
    day.wait(1)


def test_a_job_that_is_deleted_takes_its_pods_along(day: Cluster) -> None:
    day.ask("POST", JOBS, failing_job(parallelism=3, completions=3))
    day.wait(5)
    day.ask("DELETE", f"{JOBS}/work")
    day.wait(10)
    assert day.pods("work") == []


def test_most_of_a_zone_in_trouble_stops_its_emptying_and_the_excluded_do_not_count(day: Cluster) -> None:
    """Of six nodes one sleeps from the start; four are 55 %."""
    for name in DAY[:3]:
        day.kubernetes.freeze(name)
    day.wait(120)
    assert all((UNREACHABLE, "NoSchedule") in taints(day.node(name)) for name in DAY[:3])
    assert not any((UNREACHABLE, "NoExecute") in taints(day.node(name)) for name in DAY[:3])
    for name in (NIGHT, DAY[0]):
        day.patch_node(name, {"metadata": {"labels": {"node.kubernetes.io/exclude-disruption": ""}}})
    day.wait(60)
    assert all((UNREACHABLE, "NoExecute") in taints(day.node(name)) for name in DAY[:3])


def test_a_zone_that_no_node_has_any_more_lets_nothing_be_emptied(day: Cluster) -> None:
    """Each node gets a zone after it has registered, as a person or a cloud provider does it."""
    names = [name_of(node) for node in day.ask("GET", "/api/v1/nodes")["items"]]
    for name in names:
        day.patch_node(name, {"metadata": {"labels": {"topology.kubernetes.io/zone": "a"}}})
        day.kubernetes.freeze(name)
    day.wait(300)
    assert not any((UNREACHABLE, "NoExecute") in taints(day.node(name)) for name in DAY)


def test_nodes_are_emptied_one_in_ten_seconds(day: Cluster) -> None:
    day.patch_node(NIGHT, {"metadata": {"labels": {"node.kubernetes.io/exclude-disruption": ""}}})
    for name in DAY[:2]:
        day.kubernetes.freeze(name)
    day.wait(46)
    emptied = [(UNREACHABLE, "NoExecute") in taints(day.node(name)) for name in DAY[:2]]
    assert sum(emptied) == 1
    day.wait(10)
    assert all((UNREACHABLE, "NoExecute") in taints(day.node(name)) for name in DAY[:2])


def lone(day: Cluster, name: str, **spec: object) -> None:
    own = template(name, nodeName="worker-1", **spec)["spec"]
    day.ask("POST", PODS, {"metadata": {"name": name}, "spec": own})


def tolerated(limit_s: int | None = None, key: str = "test") -> Object:
    limit = {} if limit_s is None else {"tolerationSeconds": limit_s}
    return {"key": key, "operator": "Exists", "effect": "NoExecute"} | limit


def taint(day: Cluster, *keys: str, **more: str) -> None:
    found = [{"key": key, "effect": "NoExecute", **more} for key in keys]
    day.patch_node("worker-1", {"spec": {"taints": found}})


def stays(day: Cluster, name: str) -> bool:
    found = day.kubernetes.store.get("pods", "default", name)
    return found is not None and not is_leaving(found)


def test_the_first_toleration_that_matches_a_taint_counts(day: Cluster) -> None:
    lone(day, "patient", tolerations=[tolerated(), tolerated(20)])
    lone(day, "hasty", tolerations=[tolerated(20), tolerated()])
    lone(day, "neither")
    lone(day, "none-left", tolerations=[tolerated(-5)])
    day.wait(5)
    taint(day, "test")
    day.wait(1)
    assert [stays(day, name) for name in ("patient", "hasty", "neither", "none-left")] == [True, True, False, False]
    day.wait(20)
    assert (stays(day, "patient"), stays(day, "hasty")) == (True, False)


def test_a_toleration_counts_from_the_first_look_at_the_taint(day: Cluster) -> None:
    lone(day, "timed", tolerations=[tolerated(30)])
    day.wait(5)
    taint(day, "test", timeAdded="2020-01-01T00:00:00Z")
    day.wait(29)
    assert stays(day, "timed")
    day.wait(2)
    assert not stays(day, "timed")


def test_a_later_taint_or_toleration_moves_no_deletion_unless_it_is_not_tolerated(day: Cluster) -> None:
    both = [tolerated(30), tolerated(2, "more")]
    for name in ("two", "added", "doomed"):
        lone(day, name, tolerations=both if name == "two" else both[:1])
    day.wait(5)
    taint(day, "test")
    day.wait(10)
    path, more = f"{PODS}/added", [*day.stored("pods", "default", "added")["spec"]["tolerations"], both[1], tolerated()]
    day.ask("PATCH", path, {"spec": {"tolerations": more}}, content_type=MERGE)
    taint(day, "test", "more")
    day.wait(10)
    assert [stays(day, name) for name in ("two", "added", "doomed")] == [True, True, False]
    day.wait(11)
    assert [stays(day, name) for name in ("two", "added")] == [False, False]


def test_a_taint_that_goes_in_time_deletes_nothing(day: Cluster) -> None:
    lone(day, "timed", tolerations=[tolerated(30)])
    day.wait(5)
    for keys in (("test",), ()):
        taint(day, *keys)
        day.wait(20)
    day.wait(60)
    assert stays(day, "timed")


def test_a_taint_deletes_pods_that_have_ended(day: Cluster) -> None:
    lone(day, "ended", activeDeadlineSeconds=1)
    day.wait(5)
    assert day.stored("pods", "default", "ended")["status"]["phase"] == "Failed"
    taint(day, "test")
    day.wait(1)
    assert not stays(day, "ended")


def test_when_all_nodes_are_lost_no_node_is_emptied_any_more(day: Cluster) -> None:
    """Kubernetes' full disruption: what was tainted before is taken back, and comes again with the first node."""
    day.kubernetes.freeze("worker-1")
    day.wait(70)
    assert (UNREACHABLE, "NoExecute") in taints(day.node("worker-1"))
    everyone = [name_of(node) for node in day.ask("GET", "/api/v1/nodes")["items"]]
    for name in everyone:
        day.kubernetes.freeze(name)
    day.wait(600)
    assert all(taints(day.node(name)) == {(UNREACHABLE, "NoSchedule")} for name in everyone)
    day.kubernetes.thaw("infra-1")
    day.patch_node(NIGHT, {"metadata": {"labels": {"node.kubernetes.io/exclude-disruption": ""}}})
    for name in DAY[1:]:
        day.kubernetes.thaw(name)
    day.wait(30)
    assert (UNREACHABLE, "NoExecute") in taints(day.node("worker-1"))
    assert taints(day.node("worker-2")) == set()


def test_the_first_node_that_is_back_gives_all_others_their_time_again(day: Cluster) -> None:
    """A node that nothing has been heard of since it registered is silent after the grace period, 50 s."""
    for node in day.ask("GET", "/api/v1/nodes")["items"]:
        day.kubernetes.freeze(name_of(node))
    day.wait(120)
    day.ask("POST", "/api/v1/nodes", {"metadata": {"name": "bare"}})
    day.wait(40)
    day.kubernetes.thaw("infra-1")
    day.wait(45)
    assert condition(day.node("bare"), "Ready") is None
    day.wait(15)
    assert (condition(day.node("bare"), "Ready") or {})["status"] == "Unknown"


def test_required_affinity_and_its_operators_choose_the_node(day: Cluster) -> None:
    day.label(DAY_PROFILE, "worker-3", "worker-4")
    terms = [{"matchExpressions": [{"key": "vgpu.type", "operator": "In", "values": [DAY_PROFILE]}]}]
    terms[0]["matchExpressions"].append({"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["worker-3"]})
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    day.ask("POST", PODS, {"metadata": {"name": "picky-0"}, "spec": template("picky", affinity=affinity)["spec"]})
    day.wait(1)
    assert day.where("picky") == {"picky-0": "worker-4"}


def claim(name: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": spec}


def attachments(day: Cluster) -> dict[str, bool]:
    return {
        item["spec"]["nodeName"]: item["status"]["attached"] for item in day.kubernetes.store.all("volumeattachments")
    }


def user_of(claim: str, name: str, node: str) -> Object:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return {"metadata": {"name": name}, "spec": template(name, nodeName=node, volumes=volumes)["spec"]}


def test_a_disk_hangs_on_the_node_of_its_pod_and_a_moment_longer(day: Cluster) -> None:
    day.ask("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim("data"))
    day.ask("POST", PODS, user_of("data", "writer", "worker-1"))
    day.wait(5)
    assert attachments(day) == {"worker-1": True}
    day.ask("DELETE", f"{PODS}/writer")
    day.wait(1.6)
    assert (day.pods("writer"), attachments(day)) == ([], {"worker-1": True})
    day.wait(1)
    assert attachments(day) == {}


def test_a_frozen_node_keeps_its_disk_from_others(day: Cluster) -> None:
    day.ask("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim("data"))
    day.ask("POST", PODS, user_of("data", "writer", "worker-1"))
    day.wait(5)
    day.kubernetes.freeze("worker-1")
    day.ask("DELETE", f"{PODS}/writer")
    day.ask("POST", PODS, user_of("data", "other", "worker-2"))
    day.wait(400)
    assert attachments(day) == {"worker-1": True}
    assert at(day.kubernetes.store.get("pods", "default", "other") or {}, "status.phase") == "Pending"
    day.kubernetes.thaw("worker-1")
    day.wait(20)
    assert attachments(day) == {"worker-2": True}
    assert at(day.kubernetes.store.get("pods", "default", "other") or {}, "status.phase") == "Running"


def test_a_quota_counts_pods_until_they_end(day: Cluster) -> None:
    """As the real controller does: also those that have no node yet."""
    quotas = "/api/v1/namespaces/default/resourcequotas"
    hard = {"requests.nvidia.com/gpu": "9", "pods": "50"}
    day.ask("POST", quotas, {"metadata": {"name": "gpus"}, "spec": {"hard": hard}})
    resources = {"limits": {"nvidia.com/gpu": "3"}}
    spec = {"containers": [{"name": "main", "image": "one", "resources": resources}], "nodeSelector": {"no": "where"}}
    day.wait(1)
    used = day.ask("GET", f"{quotas}/gpus")["status"]["used"]
    day.ask("POST", PODS, {"metadata": {"name": "waits"}, "spec": spec})
    day.wait(1)
    quota = day.ask("GET", f"{quotas}/gpus")["status"]
    assert quota["hard"] == hard
    assert int(quota["used"]["requests.nvidia.com/gpu"]) == int(used["requests.nvidia.com/gpu"]) + 3
    assert int(quota["used"]["pods"]) == int(used["pods"]) + 1 > 1
    day.ask("PATCH", f"{PODS}/waits/status", {"status": {"phase": "Failed"}}, content_type=MERGE)
    day.wait(1)
    assert day.ask("GET", f"{quotas}/gpus")["status"]["used"] == used
