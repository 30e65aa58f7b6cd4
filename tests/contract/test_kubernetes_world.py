"""The simulated Kubernetes without a wire: one story after another, in virtual time."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, story
from vgpuctl.sim.kube.api import Api
from vgpuctl.sim.kube.errors import ApiError
from vgpuctl.sim.kube.objects import Object, at, condition, is_leaving, is_true, name_of, uid_of
from vgpuctl.sim.kube.request import Reply, Request
from vgpuctl.sim.kube.watching import Watch
from vgpuctl.sim.kube.world import KubernetesWorld

DAY = ("worker-1", "worker-2", "worker-3", "worker-4")
NIGHT = "worker-5"
DAY_PROFILE, NIGHT_PROFILE = "v100-4q-4GB", "v100-16q-16GB"
UNREACHABLE = "node.kubernetes.io/unreachable"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


class Cluster:
    """The world, and short words for what the stories do with it."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock(datetime(2026, 1, 5, 8, tzinfo=UTC))
        self.world = KubernetesWorld(self.clock, story(), Durations(), **settings)
        self.api = Api(self.world)

    def wait(self, seconds: float) -> None:
        self.clock.advance_to(self.clock.now_s + seconds)

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Object:
        payload = b"" if body is None else json.dumps(body).encode()
        answer = self.api.answer(Request(method=method, path=path, body=payload, **options))
        assert isinstance(answer, Reply)
        return answer.body

    def refused(self, method: str, path: str, body: object = None, **options: Any) -> ApiError:
        with pytest.raises(ApiError) as caught:
            self.ask(method, path, body, **options)
        return caught.value

    def watch(self, path: str, **query: str) -> Watch:
        answer = self.api.answer(Request(method="GET", path=path, query={"watch": "true", **query}))
        assert isinstance(answer, Watch)
        return answer

    def node(self, name: str) -> Object:
        return self.ask("GET", f"/api/v1/nodes/{name}")

    def patch_node(self, name: str, change: Object) -> Object:
        return self.ask("PATCH", f"/api/v1/nodes/{name}", change, content_type=MERGE)

    def cordon(self, *names: str) -> None:
        for name in names:
            self.patch_node(name, {"spec": {"unschedulable": True}})

    def label(self, profile: str, *names: str) -> None:
        for name in names:
            self.patch_node(name, {"metadata": {"labels": {"vgpu.type": profile}}})

    def pods(self, app: str, *, leaving: bool = True) -> list[Object]:
        pods = self.world.store.sorted("pods", "default")
        return [pod for pod in pods if name_of(pod).startswith(f"{app}-") and (leaving or not is_leaving(pod))]

    def where(self, app: str) -> dict[str, str | None]:
        return {name_of(pod): at(pod, "spec.nodeName") for pod in self.pods(app, leaving=False)}

    def eviction(self, pod: Object, **options: Any) -> tuple[str, str, Object]:
        body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name_of(pod)}, **options}
        return "POST", f"/api/v1/namespaces/default/pods/{name_of(pod)}/eviction", body

    def budget(self) -> Object:
        return self.ask("GET", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/gateway")["status"]

    def boot_the_day(self) -> None:
        for name in DAY:
            self.world.boot(name, 1)
        self.wait(10)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def day(cluster: Cluster) -> Cluster:
    cluster.boot_the_day()
    return cluster


def taints(node: Object) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in node["spec"].get("taints") or []}


def test_at_first_only_the_control_plane_is_ready(cluster: Cluster) -> None:
    states = {name_of(node): condition(node, "Ready")["status"] for node in cluster.world.store.sorted("nodes")}
    assert states == {"infra-1": "True", **dict.fromkeys((*DAY, NIGHT), "Unknown")}
    assert taints(cluster.node("worker-1")) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert cluster.world.store.get("leases", "kube-node-lease", "worker-1") is None
    assert "nvidia.com/gpu" not in cluster.node("worker-1")["status"]["allocatable"]


def test_a_boot_ends_in_a_lease_and_a_ready_node_with_its_gpu(cluster: Cluster) -> None:
    cluster.world.boot("worker-1", 1)
    cluster.wait(1.9)
    assert not cluster.world.running("worker-1")
    cluster.wait(0.2)
    assert cluster.world.running("worker-1")
    assert not is_true(cluster.node("worker-1"), "Ready")
    cluster.wait(1)
    node = cluster.node("worker-1")
    assert is_true(node, "Ready")
    assert taints(node) == set()
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    lease = cluster.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/worker-1")
    assert lease["spec"] == {
        "holderIdentity": "worker-1",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-05T08:00:03.000000Z",
    }


def test_each_boot_has_its_own_id_and_the_machine_keeps_its_uuid(cluster: Cluster) -> None:
    seen = []
    for _ in range(2):
        cluster.world.boot("worker-1", 1)
        cluster.wait(5)
        seen.append(cluster.node("worker-1")["status"]["nodeInfo"])
        cluster.world.halt("worker-1")
    vm = next(vm for vm in story().vms if vm.name == "worker-1")
    assert seen[0]["bootID"] != seen[1]["bootID"]
    assert [info["systemUUID"] for info in seen] == [vm.uuid, vm.uuid]
    assert cluster.node("worker-1")["spec"]["providerID"] == f"vsphere://{vm.uuid}"


def test_gateway_comes_with_the_day_workers_and_spreads_over_them(day: Cluster) -> None:
    placed = Counter(day.where("gateway").values())
    assert len(placed) == 3
    assert set(placed) < set(DAY)
    assert day.budget()["disruptionsAllowed"] == 1


def test_gateway_waits_for_the_last_day_worker(cluster: Cluster) -> None:
    for name in DAY[:3]:
        cluster.world.boot(name, 1)
    cluster.wait(60)
    assert cluster.pods("gateway") == []
    cluster.world.boot(DAY[3], 1)
    cluster.wait(10)
    assert len(cluster.pods("gateway")) == 3


def test_gpu_pods_wait_for_the_label_of_their_profile(day: Cluster) -> None:
    assert set(day.where("notebooks").values()) == {None}
    waiting = condition(day.pods("notebooks")[0], "PodScheduled")
    assert waiting["reason"] == "Unschedulable"
    assert waiting["message"].startswith(
        "0/6 nodes are available: 1 node(s) had untolerated taint(s), 5 node(s) didn't"
    )
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    assert sorted(day.where("notebooks").values()) == sorted(DAY)
    assert all(is_true(pod, "Ready") for pod in day.pods("notebooks"))


def test_a_full_card_is_named_as_the_reason(day: Cluster) -> None:
    day.label(DAY_PROFILE, *DAY[:3])
    day.wait(5)
    waiting = [pod for pod in day.pods("notebooks") if not at(pod, "spec.nodeName")]
    assert len(waiting) == 1
    assert "3 Insufficient nvidia.com/gpu" in condition(waiting[0], "PodScheduled")["message"]


def test_a_cordon_is_named_as_the_reason(day: Cluster) -> None:
    day.cordon("infra-1", *DAY)
    day.ask("DELETE", f"/api/v1/namespaces/default/pods/{name_of(day.pods('gateway')[0])}")
    day.wait(1)
    waiting = [pod for pod in day.pods("gateway") if not at(pod, "spec.nodeName")]
    said = condition(waiting[0], "PodScheduled")["message"]
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
    day.world.boot(NIGHT, 1)
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
    day.world.boot(NIGHT, 1)
    day.label(NIGHT_PROFILE, NIGHT)
    day.wait(1800)
    first = day.pods("training")[0]
    day.ask(*day.eviction(first))
    day.wait(1805)
    second = day.pods("training")[0]
    assert uid_of(second) != uid_of(first)
    assert second["status"]["phase"] == "Running"


def test_the_budget_paces_the_drain_until_all_gateways_are_elsewhere(day: Cluster) -> None:
    day.cordon(*DAY)
    evicted, refusals = 0, 0
    for _ in range(100):
        left = [pod for pod in day.pods("gateway", leaving=False) if at(pod, "spec.nodeName") in DAY]
        if not left:
            break
        try:
            day.ask(*day.eviction(left[0]))
            evicted += 1
        except ApiError as error:
            assert error.code == 429
            refusals += 1
        ready = [pod for pod in day.pods("gateway", leaving=False) if is_true(pod, "Ready")]
        assert len(ready) >= 2
        day.wait(0.5)
    assert (evicted, set(day.where("gateway").values())) == (3, {"infra-1"})
    assert refusals > 0
    day.wait(5)
    assert "disruptedPods" not in day.budget()
    assert day.budget()["disruptionsAllowed"] == 1


def test_two_evictions_in_one_instant_cannot_both_pass(day: Cluster) -> None:
    first, second, _ = day.pods("gateway")
    assert day.ask(*day.eviction(first))["status"] == "Success"
    refusal = day.refused(*day.eviction(second))
    assert (refusal.code, refusal.reason) == (429, "TooManyRequests")
    assert refusal.message == "Cannot evict pod as it would violate the pod's disruption budget."
    cause = "The disruption budget gateway needs 2 healthy pods and has 3 currently"
    assert refusal.details == {"causes": [{"reason": "DisruptionBudget", "message": cause}]}


def test_a_budget_that_was_just_made_is_still_being_processed(day: Cluster) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/gateway"
    day.ask("PATCH", path, {"spec": {"maxUnavailable": 2}}, content_type=MERGE)
    refusal = day.refused(*day.eviction(day.pods("gateway")[0]))
    assert (refusal.code, refusal.retry_after_s) == (429, 10)
    assert "still being processed" in refusal.details["causes"][0]["message"]


def test_a_wrong_uid_is_refused_yet_the_budget_has_paid(day: Cluster) -> None:
    """Seen on a real API server: the budget is asked before the precondition."""
    pod, other, _ = day.pods("gateway")
    refusal = day.refused(*day.eviction(pod, deleteOptions={"preconditions": {"uid": "another"}}))
    assert (refusal.code, refusal.reason) == (409, "Conflict")
    assert not is_leaving(day.pods("gateway")[0])
    day.wait(60)
    assert day.refused(*day.eviction(other)).code == 429
    day.wait(70)
    assert day.ask(*day.eviction(pod, deleteOptions={"preconditions": {"uid": uid_of(pod)}}))["status"] == "Success"


def test_pods_that_do_not_run_bypass_the_budget(day: Cluster) -> None:
    budget = {
        "metadata": {"name": "strict"},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"app": "notebooks"}}},
    }
    day.ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    day.wait(1)
    pending = day.pods("notebooks")[0]
    assert day.ask(*day.eviction(pending))["code"] == 201
    day.ask(
        "PATCH",
        f"{PODS}/{name_of(day.pods('notebooks')[0])}/status",
        {"status": {"phase": "Failed"}},
        content_type=MERGE,
    )
    finished = day.pods("notebooks")[0]
    assert day.ask(*day.eviction(finished))["code"] == 201
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    assert day.refused(*day.eviction(day.pods("notebooks")[0])).code == 429


@pytest.mark.parametrize(("policy", "code"), [("IfHealthyBudget", 429), ("AlwaysAllow", 201)])
def test_unready_pods_and_the_policy_for_them(day: Cluster, policy: str, code: int) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/gateway"
    change = {"spec": {"maxUnavailable": 0, "unhealthyPodEvictionPolicy": policy}}
    day.ask("PATCH", path, change, content_type=MERGE)
    pod = day.pods("gateway")[0]
    day.world.freeze(pod["spec"]["nodeName"])
    day.wait(45)
    asked = day.eviction(day.pods("gateway")[0])
    got = day.ask(*asked)["code"] if code == 201 else day.refused(*asked).code
    assert got == code


def test_two_budgets_on_one_pod_are_an_error_of_the_server(day: Cluster) -> None:
    second = {
        "metadata": {"name": "second"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "gateway"}}},
    }
    day.ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", second)
    refusal = day.refused(*day.eviction(day.pods("gateway")[0]))
    assert (refusal.code, refusal.reason) == (500, "")
    assert refusal.message.startswith("This pod has more than one PodDisruptionBudget")


def test_a_namespace_that_is_going_takes_no_evictions(day: Cluster) -> None:
    day.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "lab"}})
    pod = {"metadata": {"name": "bare"}, "spec": {"nodeName": "worker-1", "containers": [{"name": "main"}]}}
    day.ask("POST", "/api/v1/namespaces/lab/pods", pod)
    day.wait(2)
    day.ask("DELETE", "/api/v1/namespaces/lab")
    path = "/api/v1/namespaces/lab/pods/bare/eviction"
    refusal = day.refused("POST", path, {"metadata": {"name": "bare"}})
    assert (refusal.code, refusal.details["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    day.wait(5)
    assert day.refused("GET", "/api/v1/namespaces/lab").code == 404
    assert day.refused("POST", path, {"metadata": {"name": "bare"}}).code == 404


def test_a_frozen_node_is_unknown_only_after_its_lease_is_stale(day: Cluster) -> None:
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    day.world.freeze("worker-1")
    frozen_s = day.clock.now_s
    day.wait(29)
    assert is_true(day.node("worker-1"), "Ready")
    day.wait(12)
    node = day.node("worker-1")
    assert condition(node, "Ready")["status"] == "Unknown"
    assert taints(node) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    # What it promised before it froze is still there: old evidence.
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    heartbeat = datetime.fromisoformat(condition(node, "Ready")["lastHeartbeatTime"])
    assert (heartbeat - day.clock.began).total_seconds() <= frozen_s
    assert not any(is_true(pod, "Ready") for pod in day.pods("notebooks") if pod["spec"]["nodeName"] == "worker-1")


def test_a_thawed_node_renews_its_lease_first_and_is_ready_later(day: Cluster) -> None:
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    before = {uid_of(pod) for pod in day.pods("notebooks")}
    day.world.freeze("worker-1")
    day.wait(60)
    renewed = day.world.store.get("leases", "kube-node-lease", "worker-1")["spec"]["renewTime"]
    boot = day.node("worker-1")["status"]["nodeInfo"]["bootID"]
    day.world.thaw("worker-1")
    assert day.world.running("worker-1")
    day.wait(1.1)
    assert day.world.store.get("leases", "kube-node-lease", "worker-1")["spec"]["renewTime"] > renewed
    assert condition(day.node("worker-1"), "Ready")["status"] == "Unknown"
    day.wait(1)
    node = day.node("worker-1")
    assert is_true(node, "Ready")
    assert taints(node) == set()
    assert node["status"]["nodeInfo"]["bootID"] == boot
    assert {uid_of(pod) for pod in day.pods("notebooks") if is_true(pod, "Ready")} == before


def test_a_short_sleep_is_not_even_noticed(day: Cluster) -> None:
    day.world.freeze("worker-1")
    day.wait(20)
    day.world.thaw("worker-1")
    watch = day.watch("/api/v1/nodes", resourceVersion=str(day.world.store.version))
    day.wait(60)
    assert all(is_true(event.object, "Ready") for event in watch.take())


def test_pods_of_a_silent_node_go_after_their_toleration_but_not_those_without_limit(day: Cluster) -> None:
    tolerant = {
        "metadata": {"name": "patient"},
        "spec": {
            "nodeName": "worker-1",
            "containers": [{"name": "main"}],
            "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
        },
    }
    day.ask("POST", "/api/v1/namespaces/default/pods", tolerant)
    day.label(DAY_PROFILE, *DAY)
    day.wait(5)
    day.world.freeze("worker-1")
    day.wait(330)
    assert not any(is_leaving(pod) for pod in day.pods("notebooks"))
    day.wait(20)
    leaving = [pod for pod in day.pods("notebooks") if is_leaving(pod)]
    assert [pod["spec"]["nodeName"] for pod in leaving] == ["worker-1"]
    assert not is_leaving(day.world.store.get("pods", "default", "patient"))
    # Frozen kubelets end nothing: the pod stays, marked, until the VM is back.
    day.wait(600)
    assert day.world.store.get("pods", "default", name_of(leaving[0])) is not None
    day.world.thaw("worker-1")
    day.wait(10)
    assert day.world.store.get("pods", "default", name_of(leaving[0])) is None


def test_a_frozen_training_goes_on_where_it_was(day: Cluster) -> None:
    day.world.boot(NIGHT, 1)
    day.label(NIGHT_PROFILE, NIGHT)
    day.wait(1800)
    before = uid_of(day.pods("training")[0])
    day.world.freeze(NIGHT)
    day.wait(250)
    day.world.thaw(NIGHT)
    day.wait(1790)
    assert day.pods("training")[0]["status"]["phase"] == "Running"
    day.wait(20)
    (pod,) = day.pods("training")
    assert (pod["status"]["phase"], uid_of(pod)) == ("Succeeded", before)


def test_what_was_deleted_takes_along_what_it_owned(day: Cluster) -> None:
    day.ask("DELETE", "/apis/apps/v1/namespaces/default/deployments/gateway")
    day.wait(5)
    assert day.pods("gateway") == []
    assert [name_of(item).split("-")[0] for item in day.world.store.all("replicasets")] == ["notebooks"]


def test_a_reboot_restarts_what_may_restart_and_fails_what_may_not(day: Cluster) -> None:
    day.world.boot(NIGHT, 1)
    day.label(DAY_PROFILE, *DAY)
    day.label(NIGHT_PROFILE, NIGHT)
    day.wait(10)
    notebook = next(pod for pod in day.pods("notebooks") if pod["spec"]["nodeName"] == "worker-1")
    trainer = day.pods("training")[0]
    for name in ("worker-1", NIGHT):
        day.world.halt(name)
        assert not day.world.running(name)
        day.world.boot(name, 1)
    day.wait(10)
    same = day.world.store.get("pods", "default", name_of(notebook))
    assert (uid_of(same), same["status"]["containerStatuses"][0]["restartCount"]) == (uid_of(notebook), 1)
    assert is_true(same, "Ready")
    assert day.world.store.get("pods", "default", name_of(trainer))["status"]["phase"] == "Failed"
    assert len([pod for pod in day.pods("training") if pod["status"]["phase"] == "Running"]) == 1


def test_shutting_down_takes_a_while_and_says_when_it_is_done(day: Cluster) -> None:
    done = []
    day.world.shut_down("worker-1", lambda: done.append(day.clock.now_s))
    began = day.clock.now_s
    day.wait(5)
    assert done == [began + 1.0]
    assert not day.world.running("worker-1")


def test_a_deleted_node_registers_anew_and_has_lost_its_labels(day: Cluster) -> None:
    day.label(DAY_PROFILE, "worker-1")
    day.world.freeze("worker-1")
    day.ask("DELETE", "/api/v1/nodes/worker-1")
    day.wait(60)
    assert day.refused("GET", "/api/v1/nodes/worker-1").code == 404
    day.world.thaw("worker-1")
    day.wait(3)
    node = day.node("worker-1")
    assert is_true(node, "Ready")
    assert "vgpu.type" not in node["metadata"]["labels"]


def test_a_deployment_replaces_a_leaving_pod_at_once_and_follows_its_scale(day: Cluster) -> None:
    pod = day.pods("gateway")[0]
    day.ask("DELETE", f"/api/v1/namespaces/default/pods/{name_of(pod)}")
    day.wait(0)
    assert len(day.pods("gateway")) == 4
    assert len(day.pods("gateway", leaving=False)) == 3
    scale = "/apis/apps/v1/namespaces/default/deployments/gateway/scale"
    assert day.ask("PATCH", scale, {"spec": {"replicas": 0}}, content_type=MERGE)["spec"] == {"replicas": 0}
    day.wait(5)
    assert day.pods("gateway") == []


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
    version = day.world.store.version
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
    assert day.world.store.version == version


def test_managed_fields_tell_who_scaled(day: Cluster) -> None:
    scale = "/apis/apps/v1/namespaces/default/deployments/gateway/scale"
    day.ask("PATCH", scale, {"spec": {"replicas": 5}}, content_type=MERGE, query={"fieldManager": "keda"})
    deployment = day.ask("GET", "/apis/apps/v1/namespaces/default/deployments/gateway")
    owners = {entry["manager"]: entry["fieldsV1"] for entry in deployment["metadata"]["managedFields"]}
    assert owners["keda"] == {"f:spec": {"f:replicas": {}}}


def test_a_watch_follows_a_selector_and_goes_on_from_a_version(day: Cluster) -> None:
    start = str(day.world.store.version)
    day.label(DAY_PROFILE, "worker-1")
    watch = day.watch("/api/v1/nodes", labelSelector=f"vgpu.type={DAY_PROFILE}", resourceVersion=start)
    day.cordon("worker-1")
    day.label(NIGHT_PROFILE, "worker-1")
    assert [event.type for event in watch.take()] == ["ADDED", "MODIFIED", "DELETED"]


def test_a_watch_from_before_the_compaction_is_told_to_list_anew(day: Cluster) -> None:
    start = str(day.world.store.version - 5)
    day.world.store.forget_log()
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


def test_the_same_seed_gives_the_same_world() -> None:
    def run() -> list[Object]:
        cluster = Cluster(seed=7)
        cluster.boot_the_day()
        cluster.label(DAY_PROFILE, *DAY)
        cluster.wait(600)
        return [*cluster.world.store.sorted("pods"), *cluster.world.store.sorted("events")]

    assert run() == run()


def test_an_idle_hour_is_a_few_heartbeats(day: Cluster) -> None:
    day.wait(60)
    before = day.world.store.version
    day.wait(3600)
    changes = day.world.store.version - before
    beats = 5 * 360
    # A Lease and a status each, and the events of the first minutes that expire.
    assert changes <= 2 * beats + 100
