"""Short words for what the stories do with a world's Kubernetes, in virtual time and without a wire."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.request import Reply, Request
from vgpuctl.sim.kube.api.watching import Watch
from vgpuctl.sim.kube.objects import Object, at, condition, is_leaving, name_of
from vgpuctl.sim.world import World

DAY = ("worker-1", "worker-2", "worker-3", "worker-4")
NIGHT = "worker-5"
DAY_PROFILE, NIGHT_PROFILE = "v100-4q-4GB", "v100-16q-16GB"
UNREACHABLE = "node.kubernetes.io/unreachable"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


#: Tests compare what is told of the time.
BEGAN = datetime(2026, 1, 5, 8, tzinfo=UTC)


class Cluster:
    """`kubernetes` is the world's own; its API is asked as a function."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.kubernetes = world.kubernetes

    @classmethod
    def by_day(cls, *, seed: int = 1) -> Cluster:
        """The story's estate with its day workers awake."""
        world = World(began=BEGAN, seed=seed)
        boot_the_day(world)
        return cls(world)

    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Object:
        payload = b"" if body is None else json.dumps(body).encode()
        answer = self.world.api.answer(Request(method=method, path=path, body=payload, **options))
        assert isinstance(answer, Reply)
        return answer.body

    def refused(self, method: str, path: str, body: object = None, **options: Any) -> ApiError:
        with pytest.raises(ApiError) as caught:
            self.ask(method, path, body, **options)
        return caught.value

    def watch(self, path: str, **query: str) -> Watch:
        answer = self.world.api.answer(Request(method="GET", path=path, query={"watch": "true", **query}))
        assert isinstance(answer, Watch)
        return answer

    def node(self, name: str) -> Object:
        return self.ask("GET", f"/api/v1/nodes/{name}")

    def patch_node(self, name: str, change: Object) -> Object:
        return self.ask("PATCH", f"/api/v1/nodes/{name}", change, content_type=MERGE)

    def cordon(self, *names: str) -> None:
        for name in names:
            self.patch_node(name, {"spec": {"unschedulable": True}})

    def label(self, profile: str, *names: str) -> None:
        for name in names:
            self.patch_node(name, {"metadata": {"labels": {"vgpu.type": profile}}})

    def pods(self, app: str, *, leaving: bool = True) -> list[Object]:
        pods = self.kubernetes.store.sorted("pods", "default")
        return [pod for pod in pods if name_of(pod).startswith(f"{app}-") and (leaving or not is_leaving(pod))]

    def where(self, app: str) -> dict[str, str | None]:
        return {name_of(pod): at(pod, "spec.nodeName") for pod in self.pods(app, leaving=False)}

    def nodes_of(self, app: str) -> list[str]:
        """The nodes of an app's pods, sorted; "" for a pod without a node."""
        return sorted(node or "" for node in self.where(app).values())

    def stored(self, plural: str, namespace: str, name: str) -> Object:
        """An object that must be there."""
        found = self.kubernetes.store.get(plural, namespace, name)
        assert found is not None, f"there is no {plural} {namespace}/{name}"
        return found

    def eviction(self, pod: Object, **options: Any) -> tuple[str, str, Object]:
        body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name_of(pod)}, **options}
        return "POST", f"/api/v1/namespaces/default/pods/{name_of(pod)}/eviction", body

    def budget(self) -> Object:
        status: Object = self.ask("GET", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/gateway")["status"]
        return status


def boot_the_day(world: World) -> None:
    """Until all day workers run, and the pods that wait for them."""
    for name in DAY:
        world.kubernetes.boot(name, 1)
    world.wait(10)


def the_condition(item: Object, kind: str) -> Object:
    """A condition that must be there."""
    found = condition(item, kind)
    assert found is not None, f"{name_of(item)} has no condition {kind}"
    return found


def taints(node: Object) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in node["spec"].get("taints") or []}
