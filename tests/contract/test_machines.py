"""A custom resource as our stream and patch meet it: found by its group, listed, marked and watched."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.peers.clusters import MERGE, STRATEGIC, Cluster
from vgpuctl.kube import actions
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.kube.stream import KubernetesStream
from vgpuctl.model.errors import ChangedMeanwhileError
from vgpuctl.model.machine import SHIELD_ANNOTATION, Machine
from vgpuctl.model.requests import PatchMachine

GROUP = "cluster.x-k8s.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODE = "/api/v1/nodes/worker-1"
NAMED = ("cluster.x-k8s.io/machine", "cluster.x-k8s.io/cluster-namespace")


def definition() -> dict[str, Any]:
    """As little as makes a Machine."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"machines.{GROUP}",
            # Without this a group of *.k8s.io would be refused.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names | {"shortNames": ["ma"]},
            "versions": [version | {"subresources": {"status": {}}}],
        },
    }


@pytest.fixture
def machines(cluster: Cluster) -> Iterator[str]:
    """Where Machines of the test's own are; the kind itself is defined, on ours from the beginning."""
    if cluster.name == "real" and cluster.http("GET", f"{DEFINITIONS}/machines.{GROUP}").code == 404:
        cluster.create(DEFINITIONS, definition())
    at = f"/apis/{GROUP}/v1beta2/namespaces/{cluster.namespace}/machines"
    cluster.until(lambda: cluster.http("GET", at).code == 200, what="the kind is served")
    body = {"metadata": {"name": "worker-1"}, "spec": {"clusterName": "gpu", "providerID": "vsphere://420f-aa"}}
    cluster.create(at, {"apiVersion": f"{GROUP}/v1beta2", "kind": "Machine"} | body)
    cluster.patch(NODE, {"metadata": {"annotations": dict(zip(NAMED, ("worker-1", cluster.namespace), strict=True))}})
    yield at
    cluster.patch(NODE, {"metadata": {"annotations": dict.fromkeys(NAMED)}})


class Followed:
    """The product's own stream over the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._namespace, self._changed = cluster.namespace, threading.Event()
        self.client = Client(KubernetesSettings(kubeconfig=str(cluster.kubeconfig)))
        self._stream = KubernetesStream(self.client, self._changed.set, drains=True)
        self._stream.fill()
        self._stream.follow()

    def machine(self) -> Machine:
        (found,) = (each for each in self._stream.machines() if each.namespace == self._namespace)
        return found

    def until(self, found: Callable[[Machine], bool]) -> Machine:
        while not found(self.machine()):
            assert self._changed.wait(20), self.machine()
            self._changed.clear()
        return self.machine()

    def close(self) -> None:
        self._stream.close()


@pytest.fixture
def followed(cluster: Cluster, machines: str) -> Iterator[Followed]:
    stream = Followed(cluster)
    yield stream
    stream.close()


def mark(followed: Followed, machine: Machine, *, shield: bool) -> None:
    actions.patch_machine(followed.client, PatchMachine(worker="worker-1", machine=machine, shield=shield))


def test_the_group_tells_which_version_it_prefers(cluster: Cluster, machines: str) -> None:
    found = cluster.get(f"/apis/{GROUP}")
    assert (found["kind"], found["apiVersion"], found["preferredVersion"]["version"]) == ("APIGroup", "v1", "v1beta2")


def test_a_list_repeats_the_kind_and_a_strategic_patch_is_refused(cluster: Cluster, machines: str) -> None:
    (item,) = cluster.get(machines)["items"]
    assert (item["apiVersion"], item["kind"]) == (f"{GROUP}/v1beta2", "Machine")
    cluster.http("PATCH", f"{machines}/worker-1", {}, STRATEGIC).refused(415, "UnsupportedMediaType")


def test_our_mark_is_seen_and_taken_off_again(cluster: Cluster, machines: str, followed: Followed) -> None:
    before = followed.machine()
    assert (before.uuid, before.shielded, before.ours) == ("420f-aa", False, False)
    assert before.path == f"{machines}/worker-1"
    mark(followed, before, shield=True)
    marked = followed.until(lambda machine: machine.shielded)
    assert marked.ours
    mark(followed, marked, shield=False)
    followed.until(lambda machine: not machine.shielded and not machine.ours)
    assert not cluster.get(f"{machines}/worker-1")["metadata"].get("annotations")


def test_who_was_quicker_keeps_his_mark(cluster: Cluster, machines: str, followed: Followed) -> None:
    before = followed.machine()
    theirs = {"metadata": {"annotations": {SHIELD_ANNOTATION: ""}}}
    cluster.patch(f"{machines}/worker-1", theirs, MERGE)
    with pytest.raises(ChangedMeanwhileError):
        mark(followed, before, shield=True)
    assert not followed.until(lambda machine: machine.shielded).ours


def test_one_that_is_gone_needs_no_mark(cluster: Cluster, machines: str, followed: Followed) -> None:
    before = followed.machine()
    cluster.http("DELETE", f"{machines}/worker-1").ok()
    mark(followed, before, shield=True)
