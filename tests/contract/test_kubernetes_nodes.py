"""Nodes, pods, budgets, and machines that are frozen: what a night is made of, on our cluster and on a real one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.support.peers.clusters import (
    STRATEGIC,
    UNREACHABLE,
    Cluster,
    Object,
    budget,
    condition,
    deployment,
    pod,
    taints,
)
from tests.support.peers.control_plane import NODE_GRACE_S
from tests.support.peers.returning import Returning
from vgpuctl.planning.steps.returning import LOOKED_S

GPU = "nvidia.com/gpu"
LATER_S = 60.0
#: kubelet: it renews its Lease, and compares its status, so often.
PERIOD_S = 10.0


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    """A node whose labels, taints and cordon are as before when the test is over."""
    name = "worker-1"
    yield name
    path = f"/api/v1/nodes/{name}"
    marks = {"metadata": {"labels": {"vgpu.type": None, "kept": None}}, "spec": {"unschedulable": None, "taints": None}}
    cluster.patch(path, marks)
    cluster.until(lambda: not taints(cluster.node(name)), LATER_S, "no taint is left")


def here(node: str, **more: Any) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": node}, **more}


def evict(cluster: Cluster, name: str, **options: Any) -> Any:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **options}
    return cluster.http("POST", cluster.path("pods", name, part="eviction"), body)


def test_a_cordon_taints_and_a_second_one_changes_nothing(cluster: Cluster, node: str) -> None:
    path = f"/api/v1/nodes/{node}"
    cluster.patch(path, {"spec": {"unschedulable": True}}, STRATEGIC)
    cordoned = ("node.kubernetes.io/unschedulable", "NoSchedule")
    cluster.until(lambda: cordoned in taints(cluster.node(node)), what="the cordon's taint")
    again = cluster.kubectl("cordon", node)
    assert (again.returncode, again.stdout) == (0, f"node/{node} already cordoned\n")
    cluster.kubectl("uncordon", node)
    cluster.until(lambda: not taints(cluster.node(node)), what="the taint goes with the cordon")


def test_labels_and_taints_by_kubectl(cluster: Cluster, node: str) -> None:
    said = [
        cluster.kubectl(*words.split())
        for words in (
            f"label node {node} vgpu.type=v100-4q-4GB",
            f"label node {node} vgpu.type=other",
            f"label node {node} vgpu.type=other --overwrite",
            f"taint node {node} kept=yes:NoSchedule",
            f"taint node {node} kept=yes:NoSchedule",
            f"taint node {node} kept-",
            f"label node {node} vgpu.type-",
        )
    ]
    assert [one.returncode for one in said] == [0, 1, 0, 0, 1, 0, 0]
    assert [one.stdout for one in said if one.returncode == 0] == [
        f"node/{node} labeled\n",
        f"node/{node} labeled\n",
        f"node/{node} tainted\n",
        f"node/{node} untainted\n",
        f"node/{node} unlabeled\n",
    ]


def test_a_pod_goes_where_its_label_and_a_gpu_are(cluster: Cluster, node: str) -> None:
    cluster.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"vgpu.type": "v100-4q-4GB"}}})
    wish: dict[str, Any] = {"containers": [{"name": "main", "image": "main:1", "resources": {"limits": {GPU: "1"}}}]}
    for name in ("first", "second"):
        cluster.create(cluster.path("pods"), pod(name, nodeSelector={"vgpu.type": "v100-4q-4GB"}, **wish))
        if name == "first":
            (first,) = cluster.until_running("app=first", 1)
    assert first["spec"]["nodeName"] == node
    assert cluster.node(node)["status"]["allocatable"][GPU] == "1"

    def why() -> str:
        (second,) = cluster.pods("app=second")
        told = [one for one in second["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
        return told[0].get("reason", "") if told else ""

    assert cluster.until(why) == "Unschedulable"
    cluster.http("DELETE", cluster.path("pods", "first"), {"gracePeriodSeconds": 0}).ok()
    cluster.until_running("app=second", 1)


def test_evictions_are_paced_by_the_budget(cluster: Cluster) -> None:
    """Pods that nobody replaces: what is spent stays spent."""
    for number in (1, 2, 3):
        cluster.create(cluster.path("pods"), pod(f"gateway-{number}", app="gateway"))
    first, *_ = (one["metadata"] for one in cluster.until_running("app=gateway", 3))
    cluster.create(cluster.path("poddisruptionbudgets", group="policy"), budget("gateway", "gateway", minAvailable=3))
    path = cluster.path("poddisruptionbudgets", "gateway", "policy")
    cluster.until(lambda: cluster.get(path).get("status", {}).get("currentHealthy") == 3)
    refusal = evict(cluster, "gateway-1").refused(429, "TooManyRequests")
    assert refusal["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    why = "The disruption budget gateway needs 3 healthy pods and has 3 currently"
    assert refusal["details"]["causes"] == [{"reason": "DisruptionBudget", "message": why}]
    cluster.patch(path, {"spec": {"minAvailable": 2}})
    cluster.until(lambda: cluster.get(path)["status"]["disruptionsAllowed"] == 1)
    assert evict(cluster, "gateway-1", deleteOptions={"dryRun": ["All"]}).code == 201
    done = evict(cluster, "gateway-1", deleteOptions={"preconditions": {"uid": first["uid"]}})
    assert (done.code, done.body["status"]) == (201, "Success")
    assert evict(cluster, "gateway-2").code == 429
    assert evict(cluster, "gateway-2", deleteOptions={"dryRun": ["All"]}).code == 429
    cluster.until(lambda: len(cluster.pods("app=gateway")) == 2)


def test_a_budget_that_was_just_changed_asks_for_patience(cluster: Cluster) -> None:
    """A real server may not even know yet of a budget that is a moment old: so it stands first, and is changed then."""
    cluster.create(cluster.path("pods"), pod("busy"))
    cluster.until_running("app=busy", 1)
    cluster.create(cluster.path("poddisruptionbudgets", group="policy"), budget("busy", "busy", minAvailable=1))
    path = cluster.path("poddisruptionbudgets", "busy", "policy")
    cluster.until(lambda: cluster.get(path).get("status", {}).get("currentHealthy") == 1)
    cluster.patch(path, {"spec": {"minAvailable": 2}})
    answer = evict(cluster, "busy")
    assert answer.code == 429
    patience = "is still being processed" in answer.body["details"]["causes"][0]["message"]
    assert (answer.headers.get("Retry-After") or answer.headers.get("retry-after")) == ("10" if patience else None)


def test_evictions_of_nobody_and_of_another(cluster: Cluster) -> None:
    cluster.create(cluster.path("pods"), pod("bare"))
    cluster.until_running("app=bare", 1)
    evict(cluster, "nobody").refused(404, "NotFound")
    refusal = evict(cluster, "bare", deleteOptions={"preconditions": {"uid": "another"}}).refused(409, "Conflict")
    assert "the UID in the precondition (another) does not match the UID in record" in refusal["message"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}
    cluster.http("POST", cluster.path("pods", "bare", part="eviction"), body).refused(400, "BadRequest")
    dry = evict(cluster, "bare", deleteOptions={"dryRun": ["All"]})
    assert dry.code == 201
    assert evict(cluster, "bare").code == 201
    cluster.until(lambda: not cluster.pods("app=bare"))


def test_two_budgets_on_one_pod_are_an_error_of_the_server(cluster: Cluster) -> None:
    cluster.create(cluster.path("pods"), pod("twice"))
    cluster.until_running("app=twice", 1)
    for name in ("one", "two"):
        cluster.create(cluster.path("poddisruptionbudgets", group="policy"), budget(name, "twice", maxUnavailable=1))
    answer = evict(cluster, "twice")
    assert answer.code == 500
    assert answer.body["message"].startswith("This pod has more than one PodDisruptionBudget")


def test_pending_pods_bypass_the_budget(cluster: Cluster) -> None:
    cluster.create(cluster.path("pods"), pod("waits", nodeSelector={"none": "none"}))
    cluster.create(cluster.path("poddisruptionbudgets", group="policy"), budget("all", "waits", minAvailable="100%"))
    assert evict(cluster, "waits").code == 201
    cluster.until(lambda: not cluster.pods("app=waits"))


def test_an_eviction_says_so_on_the_pod(cluster: Cluster) -> None:
    cluster.create(cluster.path("pods"), pod("told"))
    cluster.patch(cluster.path("pods", "told"), {"metadata": {"finalizers": ["example.test/held"]}})
    cluster.until_running("app=told", 1)
    assert evict(cluster, "told").code == 201
    left = cluster.get(cluster.path("pods", "told"))
    assert left["metadata"]["deletionTimestamp"]
    assert condition(left, "DisruptionTarget") == "True"
    cluster.patch(cluster.path("pods", "told"), {"metadata": {"finalizers": None}})


def test_kubectl_drains_a_node(cluster: Cluster, node: str) -> None:
    cluster.create(cluster.path("pods"), pod("bare", **here(node)))
    cluster.create(cluster.path("deployments", group="apps"), deployment("steady", 2, **here(node)))
    cluster.until_running("app=steady", 2)
    words = ("drain", node, "--pod-selector=app in (bare,steady)", "--timeout=20s")
    refused = cluster.kubectl(*words)
    assert refused.returncode == 1
    assert "cannot delete Pods that declare no controller (use --force to override)" in refused.stderr
    drained = cluster.kubectl(*words, "--force")
    assert drained.returncode == 0, drained.stderr
    assert drained.stdout.endswith(f"node/{node} drained\n")
    assert not [one for one in cluster.pods() if one["spec"].get("nodeName") == node]


def test_a_job_runs_and_its_pods_are_found(cluster: Cluster) -> None:
    template = pod("run", restartPolicy="Never")
    spec = {"template": {"metadata": {"labels": {"app": "run"}}, "spec": template["spec"]}}
    cluster.create(cluster.path("jobs", group="batch"), {"metadata": {"name": "run"}, "spec": spec})
    (only,) = cluster.until_running("job-name=run", 1)
    (owner,) = only["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "run", True)
    cluster.until(lambda: cluster.get(cluster.path("jobs", "run", "batch"))["status"].get("active") == 1)


def test_a_frozen_machine_is_lost_and_truly_back(cluster: Cluster) -> None:
    """Suspend and resume: Ready is old evidence both ways, and the Lease comes back before it."""
    node = "worker-3"
    tolerated: list[dict[str, Any]] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute"}
        for key in (UNREACHABLE, "node.kubernetes.io/not-ready")
    ]
    hasty = [one | {"tolerationSeconds": 1} for one in tolerated]
    cluster.create(cluster.path("pods"), pod("stays", **here(node, tolerations=tolerated)))
    cluster.create(cluster.path("pods"), pod("goes", **here(node, tolerations=hasty)))
    (stays,) = cluster.until_running("app=stays", 1)
    cluster.until_running("app=goes", 1)
    cluster.machines.freeze(node)
    try:
        before, returning = cluster.lease_renewed(node), Returning.of(cluster, node)
        assert condition(cluster.node(node), "Ready") == "True"
        cluster.until(lambda: condition(cluster.node(node), "Ready") == "Unknown", NODE_GRACE_S + 10, "Ready=Unknown")
        lost = {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
        cluster.until(lambda: lost <= taints(cluster.node(node)), what="the unreachable taints")
        assert cluster.node(node)["status"]["allocatable"][GPU] == "1"
        cluster.until(lambda: "deletionTimestamp" in cluster.pods("app=goes")[0]["metadata"], what="the hasty pod goes")
        assert "deletionTimestamp" not in cluster.pods("app=stays")[0]["metadata"]
        assert condition(cluster.pods("app=stays")[0], "Ready") == "False"
        assert cluster.lease_renewed(node) == before
    finally:
        cluster.machines.thaw(node)
    thawed = time.monotonic()
    cluster.until(lambda: cluster.lease_renewed(node) > before, what="the Lease is renewed")
    renewed_first = condition(cluster.node(node), "Ready")
    cluster.until(lambda: not returning.missing(), LATER_S, "truly back")
    assert time.monotonic() - thawed < 2 * PERIOD_S, "Ready=Unknown is not its own status, so it posts that soon"
    cluster.until(lambda: condition(cluster.node(node), "Ready") == "True", LATER_S, "Ready again")
    cluster.until(lambda: not taints(cluster.node(node)), LATER_S, "no taint is left")
    assert renewed_first in ("Unknown", "True")
    (back,) = cluster.until_running("app=stays", 1)
    assert back["metadata"]["uid"] == stays["metadata"]["uid"]
    assert back["status"]["containerStatuses"][0]["restartCount"] == 0
    cluster.until(lambda: not cluster.pods("app=goes"), LATER_S, "the hasty pod is gone")


def test_after_a_sleep_that_kubernetes_did_not_notice_a_node_is_back_in_half_a_minute(cluster: Cluster) -> None:
    """Nothing has changed, so the kubelet posts no status, and only its renewals show that it goes on."""
    node = "worker-2"
    before = cluster.lease_renewed(node)
    # Just after a renewal it may be silent for longest.
    cluster.until(lambda: cluster.lease_renewed(node) > before, 2 * PERIOD_S, "a renewal")
    cluster.machines.freeze(node)
    try:
        returning = Returning.of(cluster, node)
        time.sleep(2)
    finally:
        cluster.machines.thaw(node)
    thawed = time.monotonic()
    assert condition(cluster.node(node), "Ready") == "True"
    cluster.until(lambda: not returning.missing(), LATER_S, "truly back")
    back_s, posted = time.monotonic() - thawed, returning.posted()
    # Every five minutes it posts an unchanged status, too, and this may be the moment.
    assert (0 if posted else LOOKED_S) <= back_s < LOOKED_S + 1.5 * PERIOD_S


def tolerated(limit_s: int | None, key: str = "example.test/ill") -> Object:
    limit = {} if limit_s is None else {"tolerationSeconds": limit_s}
    return {"key": key, "operator": "Exists", "effect": "NoExecute"} | limit


def test_a_toleration_counts_from_the_first_look_and_the_first_that_matches(cluster: Cluster) -> None:
    node, key = "worker-2", "example.test/ill"
    tolerations = {
        "patient": [tolerated(None), tolerated(1)],
        "hasty": [tolerated(1), tolerated(None)],
        "timed": [tolerated(6), tolerated(1, "example.test/worse")],
        "not-at-all": [],
    }
    for name, found in tolerations.items():
        cluster.create(cluster.path("pods"), pod(name, **here(node, tolerations=found)))
        cluster.until_running(f"app={name}", 1)
    ill = {"key": key, "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"}
    began = time.monotonic()
    cluster.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [ill]}})
    try:
        cluster.until(lambda: left(cluster, tolerations) == {"patient", "timed"}, what="two have left")
        worse = {"key": "example.test/worse", "effect": "NoExecute"}
        cluster.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [ill, worse]}})
        cluster.until(lambda: left(cluster, tolerations) == {"timed"}, what="what does not tolerate both has left")
        cluster.until(lambda: not left(cluster, tolerations), what="the last has left")
        assert time.monotonic() - began >= 5.5, "as its first toleration said, and the second one did not change"
    finally:
        cluster.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})


def left(cluster: Cluster, names: Iterable[str]) -> set[str]:
    present = {one["metadata"]["name"] for one in cluster.pods() if "deletionTimestamp" not in one["metadata"]}
    return present & set(names)
