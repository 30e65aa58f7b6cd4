"""What `vgpuctl deploy` prints, on both Kubernetes: applied for real, and run where no worker is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.contract.conftest import NODES
from tests.support.paths import ROOT
from tests.support.peers.clusters import Cluster, Object

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def printed(namespace: str, *words: str) -> str:
    access = {"VGPUCTL_VCENTER": "vcenter.example.com", "VGPUCTL_VCENTER_USER": "alice@vsphere.local"}
    command = [sys.executable, "-m", "vgpuctl", "deploy", "-n", namespace, *words]
    env = {**os.environ, **access}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout


@pytest.fixture
def applied(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The manifests, applied. Two nodes bear the label of workers."""
    path = tmp_path / "vgpuctl.yaml"
    path.write_text(printed(cluster.namespace))
    try:
        for node in NODES[:2]:
            cluster.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"vgpu.type": "v100-4q-4GB"}}})
        done = cluster.kubectl("apply", "--filename", str(path))
        assert done.returncode == 0, done.stderr
        yield path
    finally:
        for node in NODES[:2]:
            cluster.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"vgpu.type": None}}})
        cluster.kubectl("delete", "deployment", "vgpuctl", "--namespace", cluster.namespace)
        for plural in ("clusterrolebindings", "clusterroles"):
            cluster.http("DELETE", f"{RBAC}/{plural}/vgpuctl").ok()
        for plural in ("rolebindings", "roles"):
            cluster.http("DELETE", f"{RBAC}/namespaces/kube-node-lease/{plural}/vgpuctl").ok()


def test_the_server_takes_each_object_and_a_second_time_changes_none(cluster: Cluster, applied: Path) -> None:
    dry = cluster.kubectl("apply", "--dry-run=server", "--filename", str(applied))
    assert dry.returncode == 0, dry.stderr
    again = cluster.kubectl("apply", "--filename", str(applied)).stdout.splitlines()
    assert len(again) == applied.read_text().count("---\n")
    # kubectl: a budget's selector is replaced as a whole, so its patch is never empty.
    assert [line for line in again if not line.endswith(" unchanged")] == [
        "poddisruptionbudget.policy/vgpuctl configured"
    ]


def test_the_daemon_is_put_where_no_worker_is(cluster: Cluster, applied: Path) -> None:
    def places() -> list[str]:
        return [pod["spec"].get("nodeName", "") for pod in cluster.pods("app.kubernetes.io/name=vgpuctl")]

    cluster.until(lambda: len(places()) == 2 and all(places()), what="both daemons have a node")
    assert set(places()) == {NODES[2]}


def test_a_restricted_namespace_takes_the_pod_and_none_with_more_rights(cluster: Cluster, applied: Path) -> None:
    cluster.holds_not("ours", "it has no Pod Security admission")
    namespace = cluster.get(f"/api/v1/namespaces/{cluster.namespace}")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    (template,) = (each for each in yaml.safe_load_all(applied.read_text()) if each["kind"] == "Deployment")
    spec: Object = template["spec"]["template"]["spec"]
    path = f"{cluster.path('pods')}?dryRun=All"
    cluster.create(path, {"metadata": {"name": "daemon"}, "spec": spec})
    for part in ("securityContext", "containers"):
        less = {**spec, "securityContext": {}} if part == "securityContext" else without_context(spec)
        answer = cluster.http("POST", path, {"metadata": {"name": "daemon"}, "spec": less})
        assert 'violates PodSecurity "restricted' in answer.refused(403, "Forbidden")["message"]


def without_context(spec: Object) -> Object:
    (container,) = spec["containers"]
    return {**spec, "containers": [{key: value for key, value in container.items() if key != "securityContext"}]}


def test_what_is_applied_on_trial_is_taken_too(cluster: Cluster, tmp_path: Path, applied: Path) -> None:
    trial = tmp_path / "trial.yaml"
    trial.write_text(printed(cluster.namespace, "--dry-run"))
    done = cluster.kubectl("apply", "--dry-run=server", "--filename", str(trial))
    assert done.returncode == 0, done.stderr


SECRET: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vcenter"}}


def test_a_secret_is_encoded_and_keeps_its_type(cluster: Cluster) -> None:
    path = cluster.path("secrets")
    made = cluster.create(path, {**SECRET, "stringData": {"password": "open sesame"}})
    assert (made["type"], made["data"]) == ("Opaque", {"password": "b3BlbiBzZXNhbWU="})
    assert "stringData" not in made
    changed = cluster.patch(f"{path}/vcenter", {"stringData": {"password": "other"}})
    assert changed["data"] == {"password": "b3RoZXI="}
    refused = cluster.http("PATCH", f"{path}/vcenter", {"type": "x/y"}, "application/merge-patch+json")
    assert "field is immutable" in refused.refused(422, "Invalid")["message"]
    cluster.http("POST", path, {**SECRET, "metadata": {"name": "odd"}, "data": {"password": "%"}}).refused(
        400, "BadRequest"
    )


def test_kubectl_creates_the_secret_that_the_page_shows(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame")
    words = ("create", "secret", "generic", "vcenter", "--namespace", cluster.namespace)
    done = cluster.kubectl(*words, f"--from-file={tmp_path / 'password'}")
    assert done.stdout == "secret/vcenter created\n", done.stderr
    assert cluster.get(cluster.path("secrets", "vcenter"))["data"] == {"password": "b3BlbiBzZXNhbWU="}
    rows = [line.split() for line in cluster.kubectl("get", "secrets", "-n", cluster.namespace).stdout.splitlines()]
    assert ["vcenter", "Opaque", "1"] in [row[:3] for row in rows]


def test_a_policy_says_what_it_is_for(cluster: Cluster) -> None:
    spec: Object = {"podSelector": {"matchLabels": {"app": "a"}}, "egress": [{"ports": [{"port": 443}]}]}
    path = cluster.path("networkpolicies", group="networking.k8s.io")
    made = cluster.create(path, {"metadata": {"name": "p"}, "spec": spec})
    assert made["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert made["spec"]["egress"] == [{"ports": [{"port": 443, "protocol": "TCP"}]}]
    lines = cluster.kubectl("get", "netpol", "-n", cluster.namespace).stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["NAME", "POD-SELECTOR"], ["p", "app=a"]]
    for wrong in ({"port": [443]}, {"port": 443, "protocol": 6}):
        bad = {"metadata": {"name": "q"}, "spec": {"podSelector": {}, "egress": [{"ports": [wrong]}]}}
        cluster.http("POST", path, bad).refused(400, "BadRequest")
