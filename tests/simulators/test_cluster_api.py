"""Machines: where somebody has defined them only, and under a health check that replaces those of silent nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.kubernetes_cluster import BEGAN, MERGE, Cluster
from tests.support.kubernetes_served import kubectl
from vgpuctl.kube.client import MERGE_PATCH, NotAllowedError, NotFoundError, Object
from vgpuctl.kube.machines import Machines
from vgpuctl.kube.reflector import Kind
from vgpuctl.kube.views import node as node_view
from vgpuctl.model.errors import PassingError
from vgpuctl.model.machine import SHIELD_ANNOTATION
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate

AT = "/apis/cluster.x-k8s.io/v1beta2"
MACHINES = f"{AT}/namespaces/default/machines"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster(World(replace(default_inventory(), cluster_api=True), began=BEGAN))
    found.kubernetes.boot("worker-1", 1)
    found.wait(30)
    return found


def there(cluster: Cluster, name: str) -> bool:
    return cluster.kubernetes.store.get("machines", "default", name) is not None


def mark(cluster: Cluster, name: str, value: str | None) -> Object:
    change = {"metadata": {"annotations": {SHIELD_ANNOTATION: value}}}
    return cluster.ask("PATCH", f"{MACHINES}/{name}", change, content_type=MERGE)


def test_where_nobody_defined_them_there_are_none() -> None:
    bare = Cluster(World(began=BEGAN))
    for path in ("/apis/cluster.x-k8s.io", AT, f"{AT}/machines", MACHINES):
        assert bare.refused("GET", path).code == 404
    assert "cluster.x-k8s.io" not in str(bare.ask("GET", "/apis"))


def test_they_are_found_as_any_custom_resource(cluster: Cluster) -> None:
    assert cluster.ask("GET", "/apis/cluster.x-k8s.io")["preferredVersion"]["version"] == "v1beta2"
    assert [each["name"] for each in cluster.ask("GET", AT)["resources"]] == ["machines", "machines/status"]
    listed = cluster.ask("GET", f"{AT}/machines")["items"]
    assert {each["kind"] for each in listed} == {"Machine"}, "unlike others, in a list they repeat their kind"
    refusal = cluster.refused("PATCH", f"{MACHINES}/worker-1", {}, content_type=STRATEGIC)
    assert refusal.code == 415


def test_a_silent_node_has_its_machine_replaced_unless_that_is_marked(cluster: Cluster) -> None:
    mark(cluster, "worker-1", None)
    cluster.wait(20)
    cluster.kubernetes.freeze("worker-1")
    cluster.wait(330)
    assert there(cluster, "worker-1"), "it was silent for less than five minutes, seen from when that was noticed"
    mark(cluster, "worker-1", "any")
    cluster.wait(3600)
    assert there(cluster, "worker-1")
    mark(cluster, "worker-1", None)
    cluster.wait(1)
    assert not there(cluster, "worker-1")
    assert there(cluster, "infra-1")


def test_a_node_that_registers_anew_is_told_again_which_machine_it_is(cluster: Cluster) -> None:
    cluster.ask("DELETE", "/api/v1/nodes/worker-1")
    cluster.kubernetes.boot("worker-1", 1)
    cluster.wait(30)
    annotations = cluster.node("worker-1")["metadata"]["annotations"]
    assert annotations["cluster.x-k8s.io/machine"] == "worker-1"


class Told:
    """A client with answers by path; what has none was not to be asked."""

    def __init__(self, **answers: Object | Exception) -> None:
        self.answers: dict[str, Object | Exception] = {
            "/apis/cluster.x-k8s.io": {"preferredVersion": {"version": "v1beta1"}},
            "/apis/cluster.x-k8s.io/v1beta1/machines": a_list("worker-1"),
            "selfsubjectaccessreviews": {"status": {"allowed": True}},
            **answers,
        }
        self.asked: list[str] = []

    def get(self, path: str, **_: str) -> Object:
        self.asked.append(path)
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def post(self, path: str, _: Object) -> Object:
        return self.get(path.rpartition("/")[2])


def a_list(*names: str) -> Object:
    items = [
        {
            "metadata": {"uid": name, "name": name, "namespace": "gpu", "resourceVersion": "7", "annotations": {}},
            "spec": {"providerID": "vsphere://420F-AA"},
        }
        for name in names
    ]
    return {"metadata": {"resourceVersion": "7"}, "items": items}


def a_node(machine: str = "") -> Object:
    named = {"cluster.x-k8s.io/machine": machine, "cluster.x-k8s.io/cluster-namespace": "gpu"} if machine else {}
    return {"metadata": {"name": "n", "uid": "n", "resourceVersion": "1", "annotations": named}}


def seen(told: Told, node: Object) -> Machines:
    machines = Machines(told, lambda: None)  # type: ignore[arg-type]
    machines.noticing_names(Kind("nodes", node_view)).view(node)
    machines.fill()
    return machines


def test_where_no_node_names_a_machine_nothing_is_asked() -> None:
    told = Told()
    assert seen(told, a_node()).objects() == []
    assert told.asked == []


def test_they_are_read_under_the_version_that_the_server_prefers() -> None:
    (machine,) = seen(Told(), a_node("worker-1")).objects()
    assert machine.path == "/apis/cluster.x-k8s.io/v1beta1/namespaces/gpu/machines/worker-1"
    assert (machine.called, machine.version, machine.uuid) == ("gpu/worker-1", "7", "420f-aa")


def test_when_the_server_comes_to_prefer_another_version_that_is_taken() -> None:
    told = Told()
    machines = seen(told, a_node("worker-1"))
    told.answers["/apis/cluster.x-k8s.io"] = {"preferredVersion": {"version": "v1beta2"}}
    told.answers["/apis/cluster.x-k8s.io/v1beta2/machines"] = a_list("worker-1")
    machines.fill()
    assert [machine.path for machine in machines.objects()] == [f"{AT}/namespaces/gpu/machines/worker-1"]


@pytest.mark.parametrize("error", [NotAllowedError("no"), NotFoundError("none")])
@pytest.mark.parametrize("path", ["/apis/cluster.x-k8s.io", "/apis/cluster.x-k8s.io/v1beta1/machines"])
def test_what_we_may_not_see_is_done_without(path: str, error: Exception) -> None:
    machines = seen(Told(**{path: error}), a_node("worker-1"))
    assert machines.objects() == []
    assert machines.heard, "the picture is as whole as it can be"


def test_what_we_may_see_but_not_mark_is_done_without() -> None:
    assert seen(Told(selfsubjectaccessreviews={"status": {"allowed": False}}), a_node("worker-1")).objects() == []
    machines = seen(Told(selfsubjectaccessreviews=NotAllowedError("not even that")), a_node("worker-1"))
    assert len(machines.objects()) == 1
    machines.disable()
    assert machines.objects() == []
    machines.fill()
    assert len(machines.objects()) == 1, "after a while it is asked again"


def test_a_server_that_cannot_answer_just_now_is_no_reason_to_do_without() -> None:
    with pytest.raises(PassingError):
        seen(Told(**{"/apis/cluster.x-k8s.io": PassingError("later")}), a_node("worker-1"))


def test_kubectl_works_with_them(tmp_path: Path) -> None:
    with Estate(tmp_path / "estate", "cluster-api") as estate:
        assert "worker-1" in kubectl(estate, "get", "machines")
        marked = kubectl(estate, "annotate", "machine", "worker-1", "a=b")
        assert marked.startswith("machine.cluster.x-k8s.io/worker-1")
        patch = '{"metadata":{"annotations":{"a":null}}}'
        kubectl(estate, "patch", "ma", "worker-1", "--type=merge", "-p", patch)
        shown = json.loads(kubectl(estate, "get", "machine", "worker-1", "-o", "json"))
    assert "annotations" not in shown["metadata"]
    assert MERGE_PATCH == MERGE
