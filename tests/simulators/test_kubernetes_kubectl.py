"""What the real kubectl sees of the simulated Kubernetes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubernetes_cluster import DAY_PROFILE, PODS, Cluster, boot_the_day
from tests.support.kubernetes_served import KUBECTL, environment, kubectl, running_time, standing_still
from vgpuctl.testing import Estate


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with standing_still(tmp_path_factory.mktemp("served")) as estate:
        yield estate


@pytest.fixture
def served(standing: Estate) -> Estate:
    """A day that begins anew behind the servers that stand."""
    standing.reset()
    standing.within(boot_the_day)
    return standing


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_kubectl_gets_nodes_as_tables_and_otherwise(served: Estate) -> None:
    table = rows(kubectl(served, "get", "nodes"))
    assert table[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert table[1] == ["infra-1", "Ready", "control-plane", "30d", "v1.36.3"]
    assert [row[1] for row in table[2:]] == ["Ready"] * 4 + ["NotReady"]
    wide = kubectl(served, "get", "nodes", "-o", "wide").splitlines()[0].split()
    assert wide[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert kubectl(served, "get", "no", "worker-1", "-o", "name") == "node/worker-1\n"
    assert kubectl(served, "get", "node", "worker-1", "-o", "jsonpath={.spec.providerID}").startswith("vsphere://")
    listed = json.loads(kubectl(served, "get", "nodes", "-o", "json"))
    assert {item["kind"] for item in listed["items"]} == {"Node"}
    assert "node-role.kubernetes.io/control-plane" in kubectl(served, "get", "node", "infra-1", "--show-labels")
    assert "NotFound" in kubectl(served, "get", "node", "nobody", fails=True)


def test_kubectl_gets_the_other_kinds(served: Estate) -> None:
    pods = rows(kubectl(served, "get", "pods", "-A"))
    assert pods[0] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert sum(row[1].startswith("gateway-") and row[2:4] == ["1/1", "Running"] for row in pods) == 3
    assert sum(row[0] == "kube-system" for row in pods) == 4
    assert rows(kubectl(served, "get", "deploy", "notebooks"))[1][:4] == ["notebooks", "0/4", "4", "0"]
    assert rows(kubectl(served, "get", "job"))[1][:3] == ["training", "Running", "0/1"]
    assert rows(kubectl(served, "get", "pdb"))[1][:4] == ["gateway", "N/A", "1", "1"]
    assert len(rows(kubectl(served, "get", "lease", "-n", "kube-node-lease"))) == 6
    assert "Created pod: training-" in kubectl(served, "get", "events")
    by_node = kubectl(served, "get", "pods", "-A", "--field-selector", "spec.nodeName=infra-1", "-o", "name")
    assert len(by_node.splitlines()) == 4
    assert "No resources found" in kubectl(served, "get", "pvc,volumeattachments,ds,sts")
    assert "Server Version: v1.36.3" in kubectl(served, "version")


def test_kubectl_labels_and_annotates(served: Estate) -> None:
    assert kubectl(served, "label", "node", "worker-1", f"vgpu.type={DAY_PROFILE}") == "node/worker-1 labeled\n"
    assert "already has a value" in kubectl(served, "label", "node", "worker-1", "vgpu.type=other", fails=True)
    kubectl(served, "label", "node", "worker-1", "vgpu.type=other", "--overwrite")
    assert rows(kubectl(served, "get", "nodes", "-l", "vgpu.type=other", "-L", "vgpu.type"))[1][-1] == "other"
    assert kubectl(served, "label", "node", "worker-1", "vgpu.type-") == "node/worker-1 unlabeled\n"
    assert kubectl(served, "annotate", "node", "worker-1", "why=because") == "node/worker-1 annotated\n"
    assert "must be no more than 63" in kubectl(served, "label", "node", "worker-1", f"a={'x' * 64}", fails=True)


def test_kubectl_cordons_drains_and_uncordons(served: Estate) -> None:
    kubectl(served, "label", "node", "worker-1", "worker-2", f"vgpu.type={DAY_PROFILE}")
    served.advance(5)
    assert kubectl(served, "cordon", "worker-1") == "node/worker-1 cordoned\n"
    assert kubectl(served, "cordon", "worker-1") == "node/worker-1 already cordoned\n"
    with running_time(served):
        told = kubectl(
            served, "drain", "worker-1", "worker-2", "--ignore-daemonsets", "--delete-emptydir-data", "--force"
        )
    assert "node/worker-2 drained\n" in told
    assert "ignoring DaemonSet-managed Pods: gpu-operator/nvidia-device-plugin-daemonset-" in told
    left = json.loads(kubectl(served, "get", "pods", "--field-selector", "spec.nodeName=worker-1", "-o", "json"))
    assert left["items"] == []
    assert rows(kubectl(served, "get", "node", "worker-1"))[1][1] == "Ready,SchedulingDisabled"
    assert kubectl(served, "uncordon", "worker-1") == "node/worker-1 uncordoned\n"


def test_kubectl_drain_refuses_a_bare_pod_unless_forced(served: Estate) -> None:
    bare = {"metadata": {"name": "bare"}, "spec": {"nodeName": "worker-4", "containers": [{"name": "main"}]}}
    served.within(lambda world: Cluster(world).ask("POST", PODS, bare))
    served.advance(3)
    assert "use --force to override" in kubectl(served, "drain", "worker-4", "--ignore-daemonsets", fails=True)
    with running_time(served):
        assert "pod/bare evicted" in kubectl(served, "drain", "worker-4", "--ignore-daemonsets", "--force")


def test_kubectl_waits(served: Estate) -> None:
    assert "condition met" in kubectl(served, "wait", "--for=condition=Ready", "node/worker-1", "--timeout=10s")
    served.within(lambda world: world.kubernetes.boot("worker-5", 1))
    with running_time(served):
        assert "condition met" in kubectl(served, "wait", "--for=condition=Ready", "node/worker-5", "--timeout=10s")
    kubectl(served, "cordon", "worker-1")
    told = kubectl(served, "wait", "--for=jsonpath={.spec.unschedulable}=true", "node/worker-1", "--timeout=10s")
    assert "condition met" in told


def test_kubectl_watches_until_the_stream_ends(served: Estate) -> None:
    command = [str(KUBECTL), "get", "nodes", "--watch"]
    watching = subprocess.Popen(command, env=environment(served), stdout=subprocess.PIPE, text=True)
    try:
        assert watching.stdout is not None
        first = [watching.stdout.readline().split()[0] for _ in range(7)]
        kubectl(served, "cordon", "worker-2")
        changed = watching.stdout.readline().split()
    finally:
        watching.kill()
        watching.communicate()
    assert first[0] == "NAME"
    assert changed[:2] == ["worker-2", "Ready,SchedulingDisabled"]


def test_kubectl_deletes_scales_describes_and_applies(served: Estate, tmp_path: Path) -> None:
    pod = kubectl(served, "get", "pods", "-l", "app=gateway", "-o", "name").split()[0]
    with running_time(served):
        assert "deleted" in kubectl(served, "delete", pod)
    assert "scaled" in kubectl(served, "scale", "deployment", "gateway", "--replicas=2")
    assert "nvidia.com/gpu" in kubectl(served, "describe", "node", "worker-1")
    training = kubectl(served, "get", "pods", "-l", "job-name=training", "-o", "name").split()
    assert "FailedScheduling" in kubectl(served, "describe", *training)
    manifest = tmp_path / "quota.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes"}}))
    assert kubectl(served, "apply", "-f", str(manifest)) == "configmap/notes created\n"
    assert kubectl(served, "apply", "-f", str(manifest)) == "configmap/notes unchanged\n"


def test_kubectl_creates_in_its_own_binary_form_and_rolls_out(served: Estate) -> None:
    assert kubectl(served, "create", "configmap", "notes", "--from-literal=a=b") == "configmap/notes created\n"
    assert kubectl(served, "get", "cm", "notes", "-o", "jsonpath={.data}") == '{"a":"b"}'
    assert "already exists" in kubectl(served, "create", "configmap", "notes", fails=True)
    created = kubectl(served, "create", "deployment", "shop", "--image=one", "--replicas=4")
    assert created == "deployment.apps/shop created\n"
    served.advance(5)
    kubectl(served, "set", "image", "deployment/shop", "one=two")
    with running_time(served):
        assert "successfully rolled out" in kubectl(served, "rollout", "status", "deployment", "shop", "--timeout=20s")
        assert "restarted" in kubectl(served, "rollout", "restart", "deployment", "shop")
        kubectl(served, "rollout", "status", "deployment", "shop", "--timeout=20s")
    assert len(rows(kubectl(served, "rollout", "history", "deployment", "shop"))) >= 5
    kubectl(served, "create", "pdb", "shop", "--selector=app=shop", "--min-available=50%")
    served.advance(1)
    assert rows(kubectl(served, "get", "pdb", "shop"))[1][:4] == ["shop", "50%", "N/A", "2"]
    kubectl(served, "create", "job", "once", "--image=one", "--", "true")
    kubectl(served, "create", "namespace", "lab")
    assert "is forbidden" not in kubectl(served, "create", "configmap", "there", "-n", "lab")
    kubectl(served, "delete", "namespace", "lab", "--wait=false")
    served.advance(1)
    assert "NotFound" in kubectl(served, "get", "namespace", "lab", fails=True)


def test_what_is_fixed_stays_and_what_is_not_simulated_is_refused(served: Estate) -> None:
    fixed = {
        "node/worker-1": {"spec": {"providerID": "vsphere://other"}},
        kubectl(served, "get", "pods", "-l", "app=gateway", "-o", "name").split()[0]: {"spec": {"nodeName": "other"}},
        "job/training": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
        "deployment/gateway": {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
    }
    for name, change in fixed.items():
        assert "is invalid" in kubectl(served, "patch", name, "--type=merge", "-p", json.dumps(change), fails=True)
    assert kubectl(served, "auth", "can-i", "create", "pods") == "yes\n"
    assert "Metrics API not available" in kubectl(served, "top", "nodes", fails=True)
    pod = kubectl(served, "get", "pods", "-l", "app=gateway", "-o", "name").split()[0]
    assert "could not find" in kubectl(served, "logs", pod, fails=True)


def test_calls_are_counted_by_verb_and_resource(served: Estate) -> None:
    kubectl(served, "cordon", "worker-1")
    with running_time(served):
        kubectl(served, "drain", "worker-1", "--ignore-daemonsets")
    counted = served.calls()["kubernetes"]
    assert counted["PATCH nodes"] == 1
    assert counted["POST pods/eviction"] == counted["GET nodes"] - 1 == 1
    assert all(not method.startswith("GET /") for method in counted)
