"""Which cluster: as kubectl finds it, or, in a pod, by the pod's own account."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.said import CANARY, govc
from vgpuctl.kube.access import KubernetesSettings, read_access
from vgpuctl.kube.client import Client
from vgpuctl.model.errors import UnreachableError, UsageError, VgpuctlError
from vgpuctl.settings import Flags, settings
from vgpuctl.testing import Estate


def kubeconfig(path: Path, *contexts: str, current: str | None = None) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com"}} for name in contexts],
        "users": [{"name": name, "user": {"token": CANARY}} for name in contexts],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in contexts],
    } | ({"current-context": current} if current else {})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def kubernetes(home: Path, account: Path | None = None, env: dict[str, str] | None = None, **flags: Any) -> Any:
    given = govc() | {"HOME": str(home)} | (env or {})
    return settings(Flags(**flags), given, account or home / "none").kubernetes


def server(found: KubernetesSettings) -> str:
    return read_access(found).server


def test_flag_then_variables_then_file_then_the_usual_place(tmp_path: Path) -> None:
    paths = {name: kubeconfig(tmp_path / name, name, current=name) for name in ("flag", "ours", "theirs", "file")}
    kubeconfig(tmp_path / ".kube" / "config", "usual", current="usual")
    settings_file = tmp_path / "settings.yaml"
    settings_file.write_text("version: 1\nkubeconfig: file\n")
    said = {"KUBECONFIG": str(paths["theirs"])}
    ours = said | {"VGPUCTL_KUBECONFIG": str(paths["ours"])}
    assert server(kubernetes(tmp_path, env=ours, kubeconfig=str(paths["flag"]))) == "https://flag.example.com"
    assert server(kubernetes(tmp_path, env=ours, config=settings_file)) == "https://ours.example.com"
    assert server(kubernetes(tmp_path, env=said, config=settings_file)) == "https://theirs.example.com"
    assert server(kubernetes(tmp_path, config=settings_file)) == "https://file.example.com"
    assert server(kubernetes(tmp_path)) == "https://usual.example.com"


def test_a_list_is_merged_and_the_first_current_context_counts(tmp_path: Path) -> None:
    """As for kubectl: later files add what earlier ones do not name; one that is not there is passed over."""
    files = [
        tmp_path / "none",
        kubeconfig(tmp_path / "a", "a"),
        kubeconfig(tmp_path / "b", "b", current="b"),
        kubeconfig(tmp_path / "c", "c", current="c"),
    ]
    both = ":".join(map(str, files))
    assert server(kubernetes(tmp_path, env={"KUBECONFIG": both})) == "https://b.example.com"
    assert server(kubernetes(tmp_path, kubeconfig=both, context="c")) == "https://c.example.com"


def test_a_context_that_is_not_there_suggests_the_nearest(tmp_path: Path) -> None:
    path = str(kubeconfig(tmp_path / "k", "production", "staging"))
    with pytest.raises(UsageError, match=r"has no context prodution; did you mean production\?"):
        read_access(kubernetes(tmp_path, kubeconfig=path, context="prodution"))
    with pytest.raises(UsageError, match="no current context") as told:
        read_access(kubernetes(tmp_path, kubeconfig=path))
    assert told.value.hint == "Known: production, staging."


def test_no_kubeconfig_at_all_names_every_way(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no kubeconfig") as told:
        read_access(kubernetes(tmp_path))
    for way in ("--kubeconfig", "KUBECONFIG", "VGPUCTL_KUBECONFIG", "settings file"):
        assert way in str(told.value.hint)


BROKEN = [
    {"clusters": [{"name": "a", "cluster": {}}]},
    {"clusters": [{"name": "a"}]},
    {"users": CANARY},
    {"users": [{"user": {"token": CANARY}}]},
    {"contexts": [{"name": "a", "token": CANARY}]},
    {"contexts": [CANARY]},
]


@pytest.mark.parametrize("part", BROKEN)
def test_a_broken_kubeconfig_is_told_without_its_token(part: dict[str, Any], tmp_path: Path) -> None:
    """The official client quotes the whole user in its errors."""
    path = kubeconfig(tmp_path / "k", "a", current="a")
    path.write_text(json.dumps(json.loads(path.read_text()) | part))
    with pytest.raises(VgpuctlError) as told:
        read_access(kubernetes(tmp_path, kubeconfig=str(path)))
    assert CANARY not in f"{told.value} {told.value.hint} {told.value.__cause__}"


def account(folder: Path, estate: Estate) -> Path:
    """What kubelet mounts into each pod."""
    folder.mkdir()
    (folder / "token").write_text(estate.logins.token)
    (folder / "namespace").write_text("gpu-night")
    (folder / "ca.crt").write_bytes(estate.ca.read_bytes())
    return folder


@pytest.mark.parametrize("name", ["Night", "a b", "a/b", "-a", "a-", "a;b", "a" * 64, "ä"])
def test_a_name_that_is_no_namespace_is_refused_before_anything_is_asked(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--namespace must be a namespace"):
        kubernetes(tmp_path, namespace=name)


def test_in_a_pod_it_is_the_pods_account_and_everybodys_namespace(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    with Estate(tmp_path / "estate") as estate:
        pod["KUBERNETES_SERVICE_PORT"] = str(estate.kubernetes_port)
        folder = account(tmp_path / "account", estate)
        found = kubernetes(tmp_path, folder, pod)
        assert found.namespace == KubernetesSettings().namespace
        nodes = Client(found).get("/api/v1/nodes")
        assert "worker-1" in {node["metadata"]["name"] for node in nodes["items"]}
        assert kubernetes(tmp_path, folder, pod, namespace="mine").namespace == "mine"
        # A kubeconfig that somebody put there, or names, is meant.
        kubeconfig(tmp_path / ".kube" / "config", "usual", current="usual")
        assert server(kubernetes(tmp_path, folder, pod)) == "https://usual.example.com"
    assert kubernetes(tmp_path, folder, pod).namespace == KubernetesSettings().namespace


def test_a_pod_without_an_account_says_so(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(UnreachableError, match="none cannot be used: Service token file does not exist") as told:
        read_access(kubernetes(tmp_path, env=pod))
    assert told.value.hint == "Does this pod have a service account?"
