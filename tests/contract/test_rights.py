"""Rights on both kinds of servers: the namespace that the first write makes, and the role that govc creates."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.past import night
from tests.support.peers.clusters import Cluster
from tests.support.peers.control_plane import kubeconfig
from tests.support.peers.processes import program, until
from tests.support.peers.vcenters import Vcenter
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client, NotAllowedError
from vgpuctl.kube.journal import History, Journal
from vgpuctl.kube.lease import ActingLease
from vgpuctl.kube.ledger import LedgerMap
from vgpuctl.model.departure import Departure
from vgpuctl.model.ledger import Ledger
from vgpuctl.vsphere.rights import PRIVILEGES

LEFT = Departure(timetable="day-night", host="esx-1", origin="day", to="night", since="", awake=(), carried={})
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def unmade(cluster: Cluster) -> Iterator[str]:
    """The name of a namespace that does not exist."""
    name = f"made-{cluster.namespace}"
    yield name
    cluster.http("DELETE", f"/api/v1/namespaces/{name}")


def lease(client: Client) -> ActingLease:
    return ActingLease(client, client.settings.namespace)


@pytest.mark.parametrize("first", ["lease", "departure", "history"])
def test_the_first_write_makes_the_namespace_and_reading_does_not(cluster: Cluster, unmade: str, first: str) -> None:
    client = Client(KubernetesSettings(kubeconfig=str(cluster.kubeconfig), namespace=unmade))
    journal, departures = Journal(client, unmade, "laptop/1/aa", "ann@laptop"), LedgerMap(client, unmade)
    assert (journal.read(), departures.read()) == (History(), Ledger())
    cluster.http("GET", f"/api/v1/namespaces/{unmade}").refused(404, "NotFound")
    match first:
        case "lease":
            held = lease(client)
            held.acquire(lambda _: None, lambda: False)
            held.release()
        case "departure":
            departures.write({LEFT.key: LEFT})
        case "history":
            assert journal.close(night()) == ""
    assert cluster.get(f"/api/v1/namespaces/{unmade}")["status"] == {"phase": "Active"}


def test_an_account_that_may_not_make_the_namespace_gets_the_command_that_does(cluster: Cluster, unmade: str) -> None:
    client = Client(KubernetesSettings(kubeconfig=str(limited(cluster)), namespace=unmade))
    with pytest.raises(NotAllowedError) as caught:
        lease(client).acquire(lambda _: None, lambda: False)
    assert caught.value.message == f"The namespace {unmade} does not exist, and this account may not create it."
    assert (caught.value.hint or "").startswith(f"kubectl create namespace {unmade}\n")


def limited(cluster: Cluster) -> Path:
    """A kubeconfig of an account with every right on Leases, and no other."""
    name, namespace = "leases-only", cluster.namespace
    cluster.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}
    cluster.create(f"{RBAC}/clusterroles", {"metadata": {"name": namespace}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    binding = {"metadata": {"name": namespace}, "roleRef": reference, "subjects": subjects}
    cluster.create(f"{RBAC}/clusterrolebindings", binding)
    token = cluster.kubectl("create", "token", name, "-n", namespace).stdout.strip()
    path = cluster.kubeconfig.parent / f"{namespace}-{name}"
    path.write_text(json.dumps(kubeconfig(cluster.port, token, cluster.ca)))
    user = f"--as=system:serviceaccount:{namespace}:{name}"
    until(lambda: cluster.kubectl("auth", "can-i", "create", "leases", user).stdout.strip() == "yes")
    return path


#: The user that gets the role, and its objects. Ours knows only its own users; the name for vcsim needs quotes.
GRANTED = {
    "ours": ("vgpuctl@vsphere.local", "/dc/vm", "/dc/host/gpu", "/dc/datastore"),
    "vcsim": ("o'neil@vsphere.local", "/DC0/vm", "/DC0/host/DC0_C0", "/DC0/datastore"),
}


def test_govc_takes_the_printed_commands(vcenter: Vcenter, tmp_path: Path) -> None:
    user, *paths = GRANTED[vcenter.name]
    words = [sys.executable, "-m", "vgpuctl", "rights", "vcenter", "--user", user]
    words += [word for pair in zip(("--workers", "--hosts", "--datastores"), paths, strict=True) for word in pair]
    script = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
    govc = program("govc")
    path = f"{govc.parent}:{os.environ['PATH']}"
    env = {**os.environ, **vcenter.environment, "PATH": path, "HOME": str(tmp_path), "GOVMOMI_HOME": str(tmp_path)}

    def shell(line: str, code: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-ec", line], env=env, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    shell(script)
    try:
        privileges = {each.name for each in PRIVILEGES if not each.name.startswith("System.")}
        by_vcenter = {"System.Anonymous", "System.View", "System.Read"}
        assert set(shell("govc role.ls vgpuctl-worker").split()) == privileges | by_vcenter
        for entity, role in zip(paths, ("vgpuctl-worker", "ReadOnly", "ReadOnly"), strict=True):
            listed = [line.split() for line in shell(f"govc permissions.ls {entity}").splitlines()]
            assert any(role in row and user in row for row in listed), listed
        shell("govc role.create vgpuctl-worker", 1)
        shell("govc role.create misspelt VirtualMachine.Interact.PowerOnn", 1)
    finally:
        shell(";".join(f"govc permissions.remove -principal {shlex.quote(user)} {entity}" for entity in paths))
        shell("govc role.remove vgpuctl-worker")
    assert "vgpuctl-worker" not in shell("govc role.ls")
