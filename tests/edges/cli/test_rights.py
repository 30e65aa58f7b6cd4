"""What `vgpuctl rights` prints: files for kubectl and govc that grant what the tables say, and nothing else."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.lab import BIN
from vgpuctl.kube.rights import RIGHTS, Extra, rights
from vgpuctl.vsphere.rights import PRIVILEGES

Object = dict[str, Any]


def ran(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "vgpuctl"), "rights", *words],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **env},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def printed(*words: str, **env: str) -> str:
    done = ran(*words, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def objects(*words: str, **env: str) -> list[Object]:
    return list(yaml.safe_load_all(printed("kubernetes", *words, **env)))


def where(found: Object) -> tuple[str, str, str]:
    return found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"]


def granted(found: list[Object]) -> set[tuple[str, ...]]:
    """Return each verb on each resource, with where it holds and for which name."""
    return {
        (each["metadata"].get("namespace", ""), group, resource, name, verb)
        for each in found
        for rule in each.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ["*"])
        for verb in rule["verbs"]
    }


def test_the_documents_are_in_the_order_in_which_they_can_be_created() -> None:
    assert [where(each) for each in objects()] == [
        ("Namespace", "", "vgpuctl"),
        ("ServiceAccount", "vgpuctl", "vgpuctl"),
        ("ClusterRole", "", "vgpuctl"),
        ("ClusterRoleBinding", "", "vgpuctl"),
        ("Role", "kube-node-lease", "vgpuctl"),
        ("RoleBinding", "kube-node-lease", "vgpuctl"),
        ("Role", "vgpuctl", "vgpuctl"),
        ("RoleBinding", "vgpuctl", "vgpuctl"),
    ]


def test_each_rule_has_a_comment_that_says_what_it_is_for() -> None:
    lines = printed("kubernetes", "--scale", "--force", "--cluster-api").splitlines()
    begun = [number for number, line in enumerate(lines) if line.startswith("- apiGroups")]
    assert len(begun) == len(RIGHTS)
    assert all(lines[number - 1].startswith("# ") for number in begun)
    said = " ".join(line.removeprefix("# ") for line in lines)
    for right in RIGHTS:
        assert f"{right.purpose[1:]}. Without it: {right.without}." in said


def test_nothing_outside_our_namespace_is_writable_but_what_a_switch_writes() -> None:
    found = {each for each in granted(objects()) if each[0] != "vgpuctl" and each[4] not in {"get", "list", "watch"}}
    assert {(resource, verb) for _, _, resource, _, verb in found} == {
        ("nodes", "patch"),
        ("pods/eviction", "create"),
        ("events", "create"),
    }


@pytest.mark.parametrize("extra", Extra)
def test_an_option_adds_its_rights_and_no_other(extra: Extra) -> None:
    added = granted(objects(f"--{extra}")) - granted(objects())
    expected = {resource for right in RIGHTS if right.extra is extra for resource in right.resources}
    assert {resource for _, _, resource, _, _ in added} == expected


def test_read_only_writes_nothing_and_stands_beside_the_other() -> None:
    found = objects("--read-only", "--scale")
    assert {each[4] for each in granted(found)} == {"get", "list", "watch"}
    assert {name for kind, _, name in map(where, found) if kind != "Namespace"} == {"vgpuctl-read-only"}
    assert len([each for rule in found for each in rule.get("rules", ())]) == len(
        rights(frozenset({Extra.SCALE}), read_only=True)
    )


@pytest.mark.parametrize("words", ["--read-only --force", "--service-account a:", "-n No", "--user="])
def test_what_makes_no_sense_is_refused(words: str) -> None:
    done = ran("kubernetes", *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")


def test_it_says_who_gets_the_rights() -> None:
    words = ("--service-account", "night", "--service-account", "ci:robot", "--user", "o'neil: #1", "--group", "ops")
    found = objects(*words)
    rbac = "rbac.authorization.k8s.io"
    for each in found:
        if each["kind"].endswith("Binding"):
            assert each["subjects"] == [
                {"kind": "ServiceAccount", "name": "night", "namespace": "vgpuctl"},
                {"kind": "ServiceAccount", "name": "robot", "namespace": "ci"},
                {"kind": "User", "name": "o'neil: #1", "apiGroup": rbac},
                {"kind": "Group", "name": "ops", "apiGroup": rbac},
            ]
    accounts = [where(each) for each in found if each["kind"] == "ServiceAccount"]
    assert accounts == [("ServiceAccount", "vgpuctl", "night")], "another namespace's accounts are its owner's affair"


def test_the_namespace_is_the_one_of_every_command(tmp_path: Path) -> None:
    for found in (objects("-n", "night"), objects(VGPUCTL_NAMESPACE="night")):
        assert {name for kind, _, name in map(where, found) if kind == "Namespace"} == {"night"}
        assert {each[0] for each in granted(found)} == {"", "kube-node-lease", "night"}


def test_json_is_one_list_of_the_same_objects() -> None:
    document = json.loads(printed("kubernetes", "--force", "-o", "json"))
    assert (document["kind"], document["items"]) == ("List", objects("--force"))


def commands(*words: str) -> list[list[str]]:
    text = printed("vcenter", *words).replace("\\\n", "")
    return [shlex.split(line) for line in text.splitlines() if line and not line.startswith("#")]


def test_vcenters_role_has_the_privileges_that_change_a_vm() -> None:
    (create, *grants) = commands("--user", "o'neil", "--workers", "/dc/vm/my workers")
    assert create[:3] == ["govc", "role.create", "vgpuctl-worker"]
    assert create[3:] == [each.name for each in PRIVILEGES if each.name.startswith("VirtualMachine.")]
    assert [(each[3], each[5], each[6]) for each in grants] == [
        ("o'neil", "vgpuctl-worker", "/dc/vm/my workers"),
        ("o'neil", "ReadOnly", "/DATACENTER/host/CLUSTER"),
        ("o'neil", "ReadOnly", "/DATACENTER/datastore"),
    ]


def test_an_account_that_changes_no_device_gets_less() -> None:
    assert [name.rpartition(".")[2] for name in commands("--switch-only")[0][3:]] == ["PowerOn", "Suspend", "PowerOff"]


def test_a_reader_in_vcenter_gets_no_role_of_ours() -> None:
    found = commands("--read-only")
    assert {each[1] for each in found} == {"permissions.set"}
    assert {each[5] for each in found} == {"ReadOnly"}
