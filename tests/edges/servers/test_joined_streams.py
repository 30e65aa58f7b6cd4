"""Where both streams meet: what is learned between two looks, and what could not be read, reach the picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fleets import PROFILES
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.ledger import ReadLedger
from vgpuctl.kube.views import SeenNode
from vgpuctl.model.fleet import Node, Power
from vgpuctl.model.identity import NodeIdentity
from vgpuctl.model.ledger import Ledger
from vgpuctl.model.profiles import Catalogue, WorkerRule
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.observe.wiring import Connection, Settings
from vgpuctl.vsphere.session import VcenterSettings
from vgpuctl.vsphere.views import Outline, Vm

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
"""
BY_LABEL = WorkerRule(profile="v100-4q-4GB", folder="/dc/vm/gpu", labels={"pool": "slices"})
OUTLINE = Outline(moid="vm-1", name="capv-1", folder="/dc/vm/gpu")


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """To no server: a test says what the streams have brought."""
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    vcenter = VcenterSettings(host="127.0.0.1", port=1, user="u", password="p")
    kubernetes = KubernetesSettings(kubeconfig=str(tmp_path / "kubeconfig"))
    made = Connection(Settings(vcenter=vcenter, kubernetes=kubernetes), Catalogue(PROFILES, (BY_LABEL,)))
    monkeypatch.setattr(made._vcenter, "vms", lambda: {"vm-1": Vm(outline=OUTLINE, power=Power.SUSPENDED, uuid="u1")})
    return made


def told(connection: Connection, monkeypatch: pytest.MonkeyPatch, *nodes: SeenNode) -> None:
    """These are the nodes from now on, and the stream says that something changed."""
    monkeypatch.setattr(connection._kubernetes, "nodes", lambda: list(nodes))
    connection._kubernetes.reflectors["nodes"]._on_change()


def node(**labels: str) -> SeenNode:
    return SeenNode(NodeIdentity("n1", "u1", ""), Node(name="n1", labels=labels))


def test_a_label_that_comes_off_just_before_its_node_goes_is_learned(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks between the two events: the daemon looks once a minute."""
    told(connection, monkeypatch, node(pool="slices"))
    assert set(connection.fleet().workers) == {"capv-1"}
    told(connection, monkeypatch, node())
    told(connection, monkeypatch)
    assert set(connection.fleet().workers) == set()


def test_a_node_that_goes_with_its_label_leaves_a_worker(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(connection, monkeypatch, node(pool="slices"))
    assert set(connection.fleet().workers) == {"capv-1"}
    told(connection, monkeypatch)
    assert set(connection.fleet().workers) == {"capv-1"}


def test_departures_that_could_not_be_read_are_part_of_the_picture(connection: Connection) -> None:
    left_out = Unreadable(kind="departure", name="vgpuctl/vgpuctl x", why="it is no JSON")
    connection._last_ledger = ReadLedger(Ledger(), (left_out,))
    assert connection.fleet().unreadable == (left_out,)


def test_another_catalogue_chooses_anew_and_still_knows_the_labels_of_nodes_that_are_gone(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that sleeps without its node would be a stranger after any change of the files."""
    told(connection, monkeypatch, node(pool="slices"))
    assert set(connection.fleet().workers) == {"capv-1"}
    told(connection, monkeypatch)
    builder = connection._builder
    builder.use(Catalogue(PROFILES, (replace(BY_LABEL, profile="v100-8q-8GB"),)))
    assert connection.fleet().worker("capv-1").profile == "v100-8q-8GB"
    builder.use(Catalogue(PROFILES, (replace(BY_LABEL, folder="/dc/vm/other"),)))
    assert set(connection.fleet().workers) == set()


def test_labels_are_forgotten_while_no_entry_asks_for_them(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their changes are not learned then."""
    told(connection, monkeypatch, node(pool="slices"))
    assert set(connection.fleet().workers) == {"capv-1"}
    connection._builder.use(Catalogue(PROFILES))
    told(connection, monkeypatch, node())
    told(connection, monkeypatch)
    connection._builder.use(Catalogue(PROFILES, (BY_LABEL,)))
    assert set(connection.fleet().workers) == set()
