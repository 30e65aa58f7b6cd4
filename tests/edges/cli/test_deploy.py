"""What `vgpuctl deploy` prints: all that runs the daemon, from the user's own files, and no secret."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.lab import BIN
from tests.support.paths import ROOT
from vgpuctl.files import read_files
from vgpuctl.kube.rights import RIGHTS, Extra
from vgpuctl.settings.file import settings_file

Object = dict[str, Any]
ACCESS = {"VGPUCTL_VCENTER": "vc.example.com:8443", "GOVC_USERNAME": "", "VGPUCTL_VCENTER_USER": "alice@vsphere.local"}
SCALING = """\
version: 1
timezone: UTC
shifts:
  day: {starts: "0 8 * * *", profiles: [v100-4q-4GB]}
  night: {starts: "0 20 * * *", profiles: [v100-16q-16GB], scale: default/deployment/notebooks}
drain: {timeout: 10m}
on_stuck: force
"""


def ran(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "vgpuctl"), *words],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **ACCESS, **env},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def printed(folder: Path, *words: str, **env: str) -> str:
    done = ran(folder, "deploy", *words, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def objects(folder: Path, *words: str, **env: str) -> list[Object]:
    return list(yaml.safe_load_all(printed(folder, *words, **env)))


def the(kind: str, found: list[Object]) -> Object:
    (one,) = (each for each in found if each["kind"] == kind)
    return one


def rules(found: list[Object]) -> list[Object]:
    return [rule for each in found for rule in each.get("rules", ())]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The user's own files."""
    shutil.copy(ROOT / "profiles.yaml", tmp_path)
    shutil.copytree(ROOT / "schedules", tmp_path / "schedules")
    return tmp_path


def test_the_documents_are_in_the_order_in_which_they_can_be_created(folder: Path) -> None:
    kinds = [each["kind"] for each in objects(folder)]
    rights = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Role", "RoleBinding"]
    running = ["ConfigMap", "PodDisruptionBudget", "NetworkPolicy", "Deployment"]
    assert kinds == ["Namespace", "ServiceAccount", *rights, *running]
    assert printed(folder) == printed(folder), "the same text each time, for git"


def test_the_container_finds_the_files_that_a_command_reads_here(folder: Path) -> None:
    """The volume, as kubelet would mount it, read as the daemon reads it."""
    (folder / "vcenter-ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    words = ("--ca-file", "vcenter-ca.pem", "-n", "night")
    found = objects(folder, *words, VGPUCTL_LEASE_SECONDS="20")
    (volume,) = (
        each for each in the("Deployment", found)["spec"]["template"]["spec"]["volumes"] if "configMap" in each
    )
    mount = folder / "mount"
    for item in volume["configMap"]["items"]:
        path = mount / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(the("ConfigMap", found)["data"][item["key"]])
    for name in ("profiles.yaml", "schedules/day-night.yaml"):
        assert (mount / name).read_text() == (folder / name).read_text()
    assert list(read_files(mount / "profiles.yaml", mount / "schedules").timetables) == ["day-night"]
    settings = {name: setting.value for name, setting in settings_file(str(mount / "config.yaml"), {}).items()}
    assert settings == {
        "vcenter": "vc.example.com:8443",
        "vcenter-user": "alice@vsphere.local",
        "ca-file": str(mount / "ca.pem"),
        "password-file": "/run/vcenter/password",
        "namespace": "night",
        "profiles": str(mount / "profiles.yaml"),
        "schedules": str(mount / "schedules"),
        "lease-seconds": "20.0",
    }
    assert (mount / "ca.pem").read_text() == "-----BEGIN CERTIFICATE-----\n"


def test_a_password_is_not_printed(folder: Path) -> None:
    (folder / "password").write_text("hunter2\n")
    for env in ({"VGPUCTL_PASSWORD": "hunter2"}, {"VGPUCTL_PASSWORD_FILE": "password"}):
        assert "hunter2" not in printed(folder, **env)
    assert "hunter2" not in printed(folder, VGPUCTL_VCENTER="https://alice%40vsphere.local:hunter2@vc.example.com")


def test_the_rights_are_those_that_the_files_need(folder: Path) -> None:
    asked = ran(folder, "rights", "kubernetes").stdout
    assert rules(objects(folder)) == rules(list(yaml.safe_load_all(asked)))
    (folder / "schedules" / "day-night.yaml").write_text(SCALING)
    assert len(rules(objects(folder))) == sum(right.extra is not Extra.CLUSTER_API for right in RIGHTS)
    assert len(rules(objects(folder, "--cluster-api"))) == len(RIGHTS)


def test_a_daemon_on_trial_may_write_nothing(folder: Path) -> None:
    found = objects(folder, "--dry-run")
    assert {verb for rule in rules(found) for verb in rule["verbs"]} == {"get", "list", "watch"}
    pod = the("Deployment", found)["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == the("ServiceAccount", found)["metadata"]["name"] == "vgpuctl-read-only"
    assert "--dry-run" in pod["containers"][0]["args"]


def test_the_daemon_avoids_each_node_that_bears_a_label_of_workers(folder: Path) -> None:
    text = (folder / "profiles.yaml").read_text()
    (folder / "profiles.yaml").write_text(text.replace("label: vgpu.type", "label: example.com/vgpu"))
    pod = the("Deployment", objects(folder))["spec"]["template"]["spec"]
    ((term,),) = (each["nodeSelectorTerms"] for each in pod["affinity"]["nodeAffinity"].values())
    avoided = {each["key"] for each in term["matchExpressions"] if each["operator"] == "DoesNotExist"}
    assert {"example.com/vgpu", "vgpuctl.io/state", "vgpuctl.io/vgpu"} <= avoided
    assert pod["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"


def test_new_settings_are_another_pod_and_new_timetables_are_not(folder: Path) -> None:
    """The daemon reads its settings at its start only, and follows the other files."""

    def template(**env: str) -> Object:
        found: Object = the("Deployment", objects(folder, **env))["spec"]["template"]
        return found

    before = template()
    table = folder / "schedules" / "day-night.yaml"
    table.write_text(table.read_text().replace("0 20", "0 21"))
    assert template() == before
    assert template(VGPUCTL_LEASE_SECONDS="20") != before


def test_the_policy_lets_the_daemon_reach_vcenter_and_the_api_server(folder: Path) -> None:
    policy = the("NetworkPolicy", objects(folder, "--api-port", "16443"))["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy, "no program may call it"
    ports = {(each["protocol"], each["port"]) for rule in policy["egress"] for each in rule["ports"]}
    assert ports == {("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 8443), ("TCP", 16443)}


def test_json_is_one_list_of_the_same_objects(folder: Path) -> None:
    document = json.loads(printed(folder, "-o", "json"))
    assert (document["kind"], document["items"]) == ("List", objects(folder))


def test_what_cannot_run_is_not_printed(folder: Path) -> None:
    done = ran(folder, "deploy", VGPUCTL_VCENTER="")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No vCenter is given." in done.stderr
    (folder / "schedules" / "a b.yaml").write_text((folder / "schedules" / "day-night.yaml").read_text())
    (folder / "schedules" / "day-night.yaml").unlink()
    assert "a ConfigMap takes no file of this name" in ran(folder, "deploy").stderr
    (folder / "profiles.yaml").write_text("version: 2\n")
    assert ran(folder, "deploy").returncode == 2


def test_systemd_takes_the_unit(folder: Path, tmp_path: Path) -> None:
    text = printed(folder, "--systemd")
    assert "vgpuctl daemon --config" in text
    assert "vgpuctl daemon --dry-run --config" in printed(folder, "--systemd", "--dry-run")
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    # systemd-analyze looks whether the program is there.
    unit = tmp_path / "vgpuctl.service"
    unit.write_text(text.replace("/opt/vgpuctl/bin/vgpuctl", str(BIN / "vgpuctl")))
    verified = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        [analyze, "security", "--offline=yes", "--threshold=20", "--no-pager", unit],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout[-500:]
