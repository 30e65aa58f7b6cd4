"""Evictions: whom a disruption budget protects, and what the server answers."""

from __future__ import annotations

import pytest

from tests.support.kubernetes_cluster import DAY, DAY_PROFILE, MERGE, PODS, Cluster
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.objects import at, is_leaving, is_true, name_of, uid_of


@pytest.fixture
def day() -> Cluster:
    return Cluster.by_day()


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
    assert refusal.details and "still being processed" in refusal.details["causes"][0]["message"]


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
    day.kubernetes.freeze(pod["spec"]["nodeName"])
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
    assert refusal.details
    assert (refusal.code, refusal.details["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    day.wait(5)
    assert day.refused("GET", "/api/v1/namespaces/lab").code == 404
    assert day.refused("POST", path, {"metadata": {"name": "bare"}}).code == 404
