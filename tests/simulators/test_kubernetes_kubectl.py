"""What the real kubectl sees of the simulated Kubernetes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.support.kubernetes_served import KUBECTL, Served

DAY_PROFILE = "v100-4q-4GB"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def served(tmp_path: Path, ca: trustme.CA) -> Iterator[Served]:
    with Served(tmp_path, ca) as server:
        yield server


@pytest.fixture(scope="module")
def resting(tmp_path_factory: pytest.TempPathFactory, ca: trustme.CA) -> Iterator[Served]:
    """One server for all tests that change nothing."""
    with Served(tmp_path_factory.mktemp("resting"), ca) as server:
        yield server


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_kubectl_gets_nodes_as_tables_and_otherwise(resting: Served) -> None:
    table = rows(resting.kubectl("get", "nodes"))
    assert table[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert table[1] == ["infra-1", "Ready", "control-plane", "30d", "v1.36.3"]
    assert [row[1] for row in table[2:]] == ["Ready"] * 4 + ["NotReady"]
    wide = resting.kubectl("get", "nodes", "-o", "wide").splitlines()[0].split()
    assert wide[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert resting.kubectl("get", "no", "worker-1", "-o", "name") == "node/worker-1\n"
    assert resting.kubectl("get", "node", "worker-1", "-o", "jsonpath={.spec.providerID}").startswith("vsphere://")
    listed = json.loads(resting.kubectl("get", "nodes", "-o", "json"))
    assert {item["kind"] for item in listed["items"]} == {"Node"}
    assert "node-role.kubernetes.io/control-plane" in resting.kubectl("get", "node", "infra-1", "--show-labels")
    assert "NotFound" in resting.kubectl("get", "node", "nobody", fails=True)


def test_kubectl_gets_the_other_kinds(resting: Served) -> None:
    pods = rows(resting.kubectl("get", "pods", "-A"))
    assert pods[0] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert sum(row[1].startswith("gateway-") and row[2:4] == ["1/1", "Running"] for row in pods) == 3
    assert sum(row[0] == "kube-system" for row in pods) == 4
    assert rows(resting.kubectl("get", "deploy", "notebooks"))[1][:4] == ["notebooks", "0/4", "4", "0"]
    assert rows(resting.kubectl("get", "job"))[1][:3] == ["training", "Running", "0/1"]
    assert rows(resting.kubectl("get", "pdb"))[1][:4] == ["gateway", "N/A", "1", "1"]
    assert len(rows(resting.kubectl("get", "lease", "-n", "kube-node-lease"))) == 6
    assert "Created pod: training-" in resting.kubectl("get", "events")
    by_node = resting.kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=infra-1", "-o", "name")
    assert len(by_node.splitlines()) == 4
    assert "No resources found" in resting.kubectl("get", "pvc,volumeattachments,ds,sts")
    assert "Server Version: v1.36.3" in resting.kubectl("version")


def test_kubectl_labels_and_annotates(served: Served) -> None:
    assert served.kubectl("label", "node", "worker-1", f"vgpu.type={DAY_PROFILE}") == "node/worker-1 labeled\n"
    assert "already has a value" in served.kubectl("label", "node", "worker-1", "vgpu.type=other", fails=True)
    served.kubectl("label", "node", "worker-1", "vgpu.type=other", "--overwrite")
    assert rows(served.kubectl("get", "nodes", "-l", "vgpu.type=other", "-L", "vgpu.type"))[1][-1] == "other"
    assert served.kubectl("label", "node", "worker-1", "vgpu.type-") == "node/worker-1 unlabeled\n"
    assert served.kubectl("annotate", "node", "worker-1", "why=because") == "node/worker-1 annotated\n"
    assert "must be no more than 63" in served.kubectl("label", "node", "worker-1", f"a={'x' * 64}", fails=True)


def test_kubectl_cordons_drains_and_uncordons(served: Served) -> None:
    served.kubectl("label", "node", "worker-1", "worker-2", f"vgpu.type={DAY_PROFILE}")
    served.wait(5)
    assert served.kubectl("cordon", "worker-1") == "node/worker-1 cordoned\n"
    assert served.kubectl("cordon", "worker-1") == "node/worker-1 already cordoned\n"
    with served.running_time():
        told = served.kubectl(
            "drain", "worker-1", "worker-2", "--ignore-daemonsets", "--delete-emptydir-data", "--force"
        )
    assert told.endswith("node/worker-2 drained\n")
    left = json.loads(served.kubectl("get", "pods", "--field-selector", "spec.nodeName=worker-1", "-o", "json"))
    assert left["items"] == []
    assert rows(served.kubectl("get", "node", "worker-1"))[1][1] == "Ready,SchedulingDisabled"
    assert served.kubectl("uncordon", "worker-1") == "node/worker-1 uncordoned\n"


def test_kubectl_drain_refuses_a_bare_pod_unless_forced(served: Served) -> None:
    bare = {"metadata": {"name": "bare"}, "spec": {"nodeName": "worker-4", "containers": [{"name": "main"}]}}
    served.http("POST", "/api/v1/namespaces/default/pods", bare)
    served.wait(3)
    assert "use --force to override" in served.kubectl("drain", "worker-4", fails=True)
    with served.running_time():
        assert "pod/bare evicted" in served.kubectl("drain", "worker-4", "--force")


def test_kubectl_waits(served: Served) -> None:
    assert "condition met" in served.kubectl("wait", "--for=condition=Ready", "node/worker-1", "--timeout=10s")
    served.within(lambda: served.world.boot("worker-5", 1))
    with served.running_time():
        assert "condition met" in served.kubectl("wait", "--for=condition=Ready", "node/worker-5", "--timeout=10s")
    served.kubectl("cordon", "worker-1")
    told = served.kubectl("wait", "--for=jsonpath={.spec.unschedulable}=true", "node/worker-1", "--timeout=10s")
    assert "condition met" in told


def test_kubectl_watches_until_the_stream_ends(served: Served) -> None:
    command = [str(KUBECTL), "get", "nodes", "--watch"]
    watching = subprocess.Popen(command, env=served.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert watching.stdout is not None
        first = [watching.stdout.readline().split()[0] for _ in range(7)]
        served.kubectl("cordon", "worker-2")
        changed = watching.stdout.readline().split()
    finally:
        watching.kill()
        watching.communicate()
    assert first[0] == "NAME"
    assert changed[:2] == ["worker-2", "Ready,SchedulingDisabled"]


def test_kubectl_deletes_scales_describes_and_applies(served: Served, tmp_path: Path) -> None:
    pod = served.kubectl("get", "pods", "-l", "app=gateway", "-o", "name").split()[0]
    with served.running_time():
        assert "deleted" in served.kubectl("delete", pod)
    assert "scaled" in served.kubectl("scale", "deployment", "gateway", "--replicas=2")
    assert "nvidia.com/gpu" in served.kubectl("describe", "node", "worker-1")
    training = served.kubectl("get", "pods", "-l", "job-name=training", "-o", "name").split()
    assert "FailedScheduling" in served.kubectl("describe", *training)
    manifest = tmp_path / "quota.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes"}}))
    assert served.kubectl("apply", "-f", str(manifest)) == "configmap/notes created\n"
    assert served.kubectl("apply", "-f", str(manifest)) == "configmap/notes unchanged\n"


def test_kubectl_creates_in_its_own_binary_form_and_rolls_out(served: Served) -> None:
    assert served.kubectl("create", "configmap", "notes", "--from-literal=a=b") == "configmap/notes created\n"
    assert served.kubectl("get", "cm", "notes", "-o", "jsonpath={.data}") == '{"a":"b"}'
    assert "already exists" in served.kubectl("create", "configmap", "notes", fails=True)
    created = served.kubectl("create", "deployment", "shop", "--image=one", "--replicas=4")
    assert created == "deployment.apps/shop created\n"
    served.wait(5)
    served.kubectl("set", "image", "deployment/shop", "one=two")
    with served.running_time():
        assert "successfully rolled out" in served.kubectl("rollout", "status", "deployment", "shop", "--timeout=20s")
        assert "restarted" in served.kubectl("rollout", "restart", "deployment", "shop")
        served.kubectl("rollout", "status", "deployment", "shop", "--timeout=20s")
    assert len(rows(served.kubectl("rollout", "history", "deployment", "shop"))) >= 5
    served.kubectl("create", "pdb", "shop", "--selector=app=shop", "--min-available=50%")
    served.wait(1)
    assert rows(served.kubectl("get", "pdb", "shop"))[1][:4] == ["shop", "50%", "N/A", "2"]
    served.kubectl("create", "job", "once", "--image=one", "--", "true")
    served.kubectl("create", "namespace", "lab")
    assert "is forbidden" not in served.kubectl("create", "configmap", "there", "-n", "lab")
    served.kubectl("delete", "namespace", "lab", "--wait=false")
    served.wait(1)
    assert "NotFound" in served.kubectl("get", "namespace", "lab", fails=True)


def test_what_is_fixed_stays_and_what_is_not_simulated_is_refused(served: Served) -> None:
    fixed = {
        "node/worker-1": {"spec": {"providerID": "vsphere://other"}},
        served.kubectl("get", "pods", "-l", "app=gateway", "-o", "name").split()[0]: {"spec": {"nodeName": "other"}},
        "job/training": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
        "deployment/gateway": {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
    }
    for name, change in fixed.items():
        assert "is invalid" in served.kubectl("patch", name, "--type=merge", "-p", json.dumps(change), fails=True)
    assert served.kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "Metrics API not available" in served.kubectl("top", "nodes", fails=True)
    pod = served.kubectl("get", "pods", "-l", "app=gateway", "-o", "name").split()[0]
    assert "could not find" in served.kubectl("logs", pod, fails=True)


def test_calls_are_counted_by_verb_and_resource(served: Served) -> None:
    served.kubectl("cordon", "worker-1")
    with served.running_time():
        served.kubectl("drain", "worker-1")
    counted = served.calls.as_dict()["kubernetes"]
    assert counted["PATCH nodes"] == 1
    assert counted["POST pods/eviction"] == counted["GET nodes"] - 1 == 1
    assert all(not method.startswith("GET /") for method in counted)
