"""The drain beside kubectl's: the same pods gone, the same refused, in less time; and every refusal of an eviction."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.support.peers.clusters import MERGE, STRATEGIC, Cluster, Object, budget, condition, deployment, pod
from tests.support.peers.draining import Drainer
from vgpuctl.kube.actions import evict
from vgpuctl.kube.views import pod as pod_view
from vgpuctl.model.errors import BudgetError, SeveralBudgetsError, TryAgainError
from vgpuctl.model.requests import Evict
from vgpuctl.model.timetable import DrainOptions

NODE, OTHERS = "worker-1", ("worker-2", "worker-3")
SPARED = ("agent",)
ALLOWED = DrainOptions(timeout_s=60, force=True, delete_emptydir_data=True, skip_wait_for_delete_timeout_s=1)
KUBECTL_ALLOWED = ("--force", "--delete-emptydir-data", "--skip-wait-for-delete-timeout=1", "--timeout=60s")
HALF = 0.5
WARM, WARM_S = "example.test/warm", 1.0
CROWD = 12


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    """Pods land on it until the others are opened again; afterwards it is as it was."""
    close(cluster)
    yield NODE
    for name in (NODE, *OTHERS):
        cleaned(cluster, name)


def close(cluster: Cluster) -> None:
    cleaned(cluster, NODE)
    for name in OTHERS:
        cluster.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})


def cleaned(cluster: Cluster, name: str) -> None:
    meta = cluster.node(name)["metadata"]
    ours = {
        part: {key: None for key in meta.get(part) or () if key.startswith("vgpuctl.io/")}
        for part in ("labels", "annotations")
    }
    cluster.patch(f"/api/v1/nodes/{name}", {"metadata": ours, "spec": {"unschedulable": None}})


def opened(cluster: Cluster) -> None:
    for name in OTHERS:
        cluster.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})


def budgets(cluster: Cluster, name: str, app: str, **limit: Any) -> None:
    cluster.create(cluster.path("poddisruptionbudgets", group="policy"), budget(name, app, **limit))
    path = cluster.path("poddisruptionbudgets", name, "policy")
    cluster.until(lambda: cluster.get(path).get("status", {}).get("expectedPods"), what=f"budget {name} is counted")


def there(cluster: Cluster) -> set[str]:
    """The apps of our namespace that still have a pod on the node which is not on its way out."""
    pods = [one for one in cluster.pods() if one["spec"].get("nodeName") == NODE]
    return {one["metadata"]["labels"]["app"] for one in pods if "deletionTimestamp" not in one["metadata"]}


def seen(cluster: Cluster, name: str) -> Evict:
    return Evict(pod=pod_view(cluster.get(cluster.path("pods", name))), budgets=("one", "two"))


def daemon(name: str) -> Object:
    template = pod(name, tolerations=[{"operator": "Exists"}])
    spec = {"selector": {"matchLabels": {"app": name}}, "template": {**template, "metadata": template["metadata"]}}
    spec["template"] = {"metadata": {"labels": {"app": name}}, "spec": template["spec"]}
    return {"metadata": {"name": name}, "spec": spec}


def stateful(name: str, replicas: int) -> Object:
    made = deployment(name, replicas)
    return {"metadata": made["metadata"], "spec": {**made["spec"], "serviceName": name}}


def zoo(cluster: Cluster) -> None:
    """One of each kind that a drain treats in its own way, all on one node."""
    apps, pods = "apps", cluster.path("pods")
    cluster.create(cluster.path("deployments", group=apps), deployment("steady", 2))
    cluster.create(cluster.path("statefulsets", group=apps), stateful("ordered", 2))
    cluster.create(cluster.path("daemonsets", group=apps), daemon("agent"))
    cluster.create(cluster.path("daemonsets", group=apps), daemon("orphan"))
    cluster.create(pods, pod("bare"))
    scratch = deployment("scratch", 1, volumes=[{"name": "tmp", "emptyDir": {}}])
    cluster.create(cluster.path("deployments", group=apps), scratch)
    cluster.create(cluster.path("deployments", group=apps), deployment("held", 1))
    for app, number in (("steady", 2), ("ordered", 2), ("bare", 1), ("scratch", 1), ("held", 1)):
        cluster.until_running(f"app={app}", number)
    cluster.until(lambda: len(cluster.pods("app=orphan")) == 3)
    whole = {"propagationPolicy": "Orphan"}
    cluster.http("DELETE", cluster.path("daemonsets", "orphan", apps), whole).ok()
    cluster.until(lambda: cluster.http("GET", cluster.path("daemonsets", "orphan", apps)).code == 404)
    (one,) = cluster.pods("app=held")
    held = {"metadata": {"finalizers": ["example.test/held"]}}
    cluster.patch(cluster.path("pods", one["metadata"]["name"]), held)
    budgets(cluster, "steady", "steady", maxUnavailable=1)
    if cluster.name == "real":
        never_ready(cluster)


def never_ready(cluster: Cluster) -> None:
    """Ours knows no readiness gates."""
    unready = deployment("unready", 1, readinessGates=[{"conditionType": "example.test/never"}])
    cluster.create(cluster.path("deployments", group="apps"), unready)
    cluster.until(lambda: [one for one in cluster.pods("app=unready") if one["status"].get("phase") == "Running"])
    budgets(cluster, "unready", "unready", minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")


def let_go(cluster: Cluster) -> None:
    """What was let go before may end between the list and the patch."""
    for one in cluster.pods("app=held"):
        name = one["metadata"]["name"]
        let = cluster.http("PATCH", cluster.path("pods", name), {"metadata": {"finalizers": None}}, MERGE)
        assert let.code in (200, 404), let.body


def test_the_same_pods_are_refused_as_kubectl_refuses(cluster: Cluster, node: str) -> None:
    zoo(cluster)
    try:
        said = cluster.kubectl("drain", node, "--ignore-daemonsets", "--dry-run=server").stderr
        theirs = set(re.findall(rf"{cluster.namespace}/([a-z0-9-]+)", said.partition("cannot delete")[2]))
        (refusal,) = Drainer(cluster.kubeconfig, node, DrainOptions()).ahead().refusals
        ours = set(re.findall(rf"{cluster.namespace}/([a-z0-9-]+)", "\n".join(refusal.details)))
        assert {name.split("-")[0] for name in theirs} == {"bare", "scratch", "orphan"}, said
        assert ours == theirs
    finally:
        let_go(cluster)


def test_the_same_pods_are_gone_as_after_kubectl(cluster: Cluster, node: str) -> None:
    zoo(cluster)
    opened(cluster)
    try:
        report = Drainer(cluster.kubeconfig, node, ALLOWED).drain()
        assert [host.end for host in report.hosts] == ["done"], report
        ours = there(cluster)
        cleaned(cluster, node)
        let_go(cluster)
        ran = cluster.kubectl("drain", node, "--ignore-daemonsets", *KUBECTL_ALLOWED)
        assert ran.returncode == 0, ran.stderr
        assert ours == there(cluster) == set(SPARED)
    finally:
        let_go(cluster)


@contextmanager
def warmed(cluster: Cluster) -> Iterator[None]:
    """Pods take a moment to be ready, or a budget would set no pace: real kubelets without containers know no delay."""
    ended, since = threading.Event(), dict[str, float]()
    ready = {"status": {"conditions": [{"type": WARM, "status": "True"}]}}

    def warm() -> None:
        while not ended.wait(0.1):
            for one in cluster.pods():
                name, now = one["metadata"]["name"], time.monotonic()
                if condition(one, WARM) or one["status"].get("phase") != "Running":
                    continue
                if now - since.setdefault(name, now) >= WARM_S:
                    cluster.http("PATCH", cluster.path("pods", name, part="status"), ready, STRATEGIC)

    thread = threading.Thread(target=warm, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)


def crowd(cluster: Cluster, name: str) -> None:
    """Twelve on the one node, of which two may be missing; then the others are open."""
    slow = deployment(name, CROWD, readinessGates=[{"conditionType": WARM}])
    cluster.create(cluster.path("deployments", group="apps"), slow)
    cluster.until_running(f"app={name}", CROWD)
    budgets(cluster, name, name, minAvailable=CROWD - 2)
    path = cluster.path("poddisruptionbudgets", name, "policy")
    cluster.until(lambda: cluster.get(path)["status"].get("disruptionsAllowed") == 2, what="all are healthy")
    opened(cluster)


def test_where_a_budget_sets_the_pace_we_take_half_of_kubectls_time(cluster: Cluster, node: str) -> None:
    with warmed(cluster):
        crowd(cluster, "first")
        began = time.monotonic()
        ran = cluster.kubectl("drain", node, "--ignore-daemonsets", "--timeout=100s")
        theirs_s = time.monotonic() - began
        assert ran.returncode == 0, ran.stderr
        cluster.http("DELETE", cluster.path("deployments", "first", "apps")).ok()
        close(cluster)
        crowd(cluster, "second")
        drainer = Drainer(cluster.kubeconfig, node, DrainOptions(timeout_s=100))
        drainer.drain()
    ratio = drainer.asleep_s / theirs_s
    print(f"{cluster.name}: {CROWD} pods: kubectl {theirs_s:.1f} s, we {drainer.asleep_s:.1f} s: {ratio:.2f}")
    assert "second" not in there(cluster)
    assert len(drainer.evicted) < 2 * CROWD
    assert ratio <= HALF or cluster.name == "ours"


def test_each_refusal_of_an_eviction_is_known_for_what_it_is(cluster: Cluster) -> None:
    client = Drainer(cluster.kubeconfig, NODE, DrainOptions()).client
    for name in ("kept", "twice", "free"):
        cluster.create(cluster.path("pods"), pod(name))
        cluster.until_running(f"app={name}", 1)
    budgets(cluster, "kept", "kept", minAvailable=1)
    for name in ("one", "two"):
        budgets(cluster, name, "twice", minAvailable=0)
    with pytest.raises(BudgetError):
        evict(client, seen(cluster, "kept"))
    with pytest.raises(SeveralBudgetsError, match="twice is under several budgets, one and two") as two:
        evict(client, seen(cluster, "twice"))
    assert two.value.passing
    free = seen(cluster, "free")
    evict(client, replace(free, pod=replace(free.pod, uid="another")))
    assert "deletionTimestamp" not in cluster.get(cluster.path("pods", "free"))["metadata"]
    evict(client, replace(free, pod=replace(free.pod, name="nobody")))
    evict(client, free)
    cluster.until(lambda: not cluster.pods("app=free"))


def test_a_pod_under_two_budgets_goes_for_nobody_and_only_we_say_so_before_anything_is_touched(
    cluster: Cluster, node: str
) -> None:
    cluster.create(cluster.path("deployments", group="apps"), deployment("twice", 1))
    cluster.create(cluster.path("deployments", group="apps"), deployment("plain", 1))
    for app in ("twice", "plain"):
        cluster.until_running(f"app={app}", 1)
    for name in ("one", "two"):
        budgets(cluster, name, "twice", minAvailable=0)
    opened(cluster)
    (refusal,) = Drainer(cluster.kubeconfig, node, ALLOWED).ahead().refusals
    # Pods of the tests before may still be on their way out of namespaces of their own.
    here = [line for line in refusal.details if line.startswith(f"{cluster.namespace}/")]
    assert [line.partition(" is ")[2] for line in here] == ["under several budgets, one and two"]
    assert there(cluster) == {"twice", "plain"}
    ran = cluster.kubectl("drain", node, "--ignore-daemonsets", *KUBECTL_ALLOWED[:2], "--timeout=10s")
    assert (ran.returncode, "more than one PodDisruptionBudget" in ran.stderr) == (1, True), ran.stderr
    cluster.until(lambda: there(cluster) == {"twice"}, what="for kubectl the others are gone by then")


def test_pods_of_a_namespace_that_ends_are_waited_for_by_both(cluster: Cluster, node: str) -> None:
    for round_, drain in (("theirs", _kubectl_drains), ("ours", _we_drain)):
        inner = replace(cluster, namespace=f"{cluster.namespace}-{round_}")
        cluster.create("/api/v1/namespaces", {"metadata": {"name": inner.namespace}})
        inner.create(inner.path("pods"), pod("last"))
        inner.until_running("app=last", 1)
        inner.patch(inner.path("pods", "last"), {"metadata": {"finalizers": ["example.test/held"]}})
        inner.http("DELETE", f"/api/v1/namespaces/{inner.namespace}").ok()
        inner.until(partial(_is_leaving, inner, "last"))
        later = threading.Timer(1.0, inner.patch, (inner.path("pods", "last"), {"metadata": {"finalizers": None}}))
        later.start()
        drain(cluster, node)
        later.join()
        assert inner.http("GET", inner.path("pods", "last")).code == 404
        cleaned(cluster, node)


def _is_leaving(cluster: Cluster, name: str) -> bool:
    return "deletionTimestamp" in cluster.get(cluster.path("pods", name))["metadata"]


def _kubectl_drains(cluster: Cluster, node: str) -> None:
    ran = cluster.kubectl("drain", node, "--ignore-daemonsets", "--force", "--timeout=60s")
    assert ran.returncode == 0, ran.stderr


def _we_drain(cluster: Cluster, node: str) -> None:
    report = Drainer(cluster.kubeconfig, node, DrainOptions(timeout_s=60, force=True)).drain()
    assert [host.end for host in report.hosts] == ["done"], report


def test_a_namespace_that_ends_is_waited_for(cluster: Cluster) -> None:
    client = Drainer(cluster.kubeconfig, NODE, DrainOptions()).client
    inner = replace(cluster, namespace=f"{cluster.namespace}-ends")
    cluster.create("/api/v1/namespaces", {"metadata": {"name": inner.namespace}})
    inner.create(inner.path("pods"), pod("last"))
    inner.until_running("app=last", 1)
    last = seen(inner, "last")
    inner.patch(inner.path("pods", "last"), {"metadata": {"finalizers": ["example.test/held"]}})
    inner.http("DELETE", f"/api/v1/namespaces/{inner.namespace}").ok()
    inner.until(lambda: "deletionTimestamp" in inner.get(inner.path("pods", "last"))["metadata"])
    with pytest.raises(TryAgainError, match="being terminated"):
        evict(client, last)
    inner.patch(inner.path("pods", "last"), {"metadata": {"finalizers": None}})
    inner.until(lambda: inner.http("GET", f"/api/v1/namespaces/{inner.namespace}").code == 404)
    evict(client, last)


def test_what_we_may_not_see_is_done_without(cluster: Cluster) -> None:
    name = cluster.namespace
    rules = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch"]},
    ]
    role = {"metadata": {"name": name}, "rules": rules}
    group = "rbac.authorization.k8s.io"
    cluster.create(f"/apis/{group}/v1/clusterroles", role)
    cluster.create(cluster.path("serviceaccounts"), {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": name}
    bound = {"metadata": {"name": name}, "subjects": [subject]}
    bound["roleRef"] = {"kind": "ClusterRole", "name": name, "apiGroup": group}
    cluster.create(f"/apis/{group}/v1/clusterrolebindings", bound)
    config = json.loads(cluster.kubeconfig.read_text())
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.create(cluster.path("serviceaccounts", name, part="token"), asked)["status"]["token"]
    config["users"][0]["user"] = {"token": token}
    path = cluster.kubeconfig.with_name(f"{name}.json")
    path.write_text(json.dumps(config))
    ahead = Drainer(path, NODE, ALLOWED).ahead()
    assert not ahead.refusals, ahead.refusals
    said = [remark.message for remark in ahead.remarks if "shows us no" in remark.message]
    assert [line.split()[4].rstrip(":") for line in said] == [
        "daemonsets",
        "jobs",
        "persistentvolumeclaims",
        "volumeattachments",
    ]
