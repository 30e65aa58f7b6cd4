"""A Kubernetes as the contract sees it: plain HTTP and kubectl, and machines that can be frozen. Ours or a real one."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support.peers.processes import until

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"
JSON, MERGE = "application/json", "application/merge-patch+json"
STRATEGIC, JSON_PATCH = "application/strategic-merge-patch+json", "application/json-patch+json"
UNREACHABLE = "node.kubernetes.io/unreachable"
Object = dict[str, Any]


class Machines(Protocol):
    """What the two kinds of cluster do each in its own way."""

    def freeze(self, node: str) -> None: ...

    def thaw(self, node: str) -> None: ...

    def compact(self) -> None: ...


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any
    headers: dict[str, str]

    def refused(self, code: int, reason: str) -> Object:
        """The Status that says no; the whole of it for more questions."""
        assert (self.code, self.body["kind"], self.body["reason"]) == (code, "Status", reason), self.body
        status: Object = self.body
        return status

    def ok(self) -> Any:
        assert self.code < 300, self.body
        return self.body


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """`name`: `ours` or `real`. Tests work in a namespace of their own, and leave nodes as they found them."""

    name: str
    port: int
    token: str
    ca: Path
    kubeconfig: Path
    machines: Machines
    namespace: str = "default"

    def holds_not(self, server: str, reason: str) -> None:
        if self.name == server:
            pytest.skip(f"{server}: {reason}")

    def connect(self) -> http.client.HTTPSConnection:
        trust = ssl.create_default_context(cafile=str(self.ca))
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=trust, timeout=30)

    def http(self, method: str, path: str, body: object = None, content_type: str = JSON, **headers: str) -> Answer:
        connection = self.connect()
        payload = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type, "Accept": JSON, **headers}
        try:
            connection.request(method, path, payload, given)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        body = json.loads(text) if text[:1] in (b"{", b"[") else text.decode()
        return Answer(response.status, body, dict(response.headers))

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Object]]:
        """The events of one watch, as they come."""
        connection = self.connect()
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}", "Accept": JSON})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        try:
            yield (json.loads(line) for line in response)
        finally:
            response.close()
            connection.close()

    def kubectl(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.kubeconfig.parent)}
        return subprocess.run(
            [KUBECTL, *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def path(self, plural: str, name: str = "", group: str = "", part: str = "") -> str:
        """The URL of a resource of the test's own namespace."""
        base = f"/apis/{group}/v1" if group else "/api/v1"
        return "/".join(bit for bit in (f"{base}/namespaces/{self.namespace}/{plural}", name, part) if bit)

    def get(self, path: str) -> Object:
        found: Object = self.http("GET", path).ok()
        return found

    def create(self, path: str, body: Object) -> Object:
        made: Object = self.http("POST", path, body).ok()
        return made

    def patch(self, path: str, body: object, content_type: str = MERGE) -> Object:
        changed: Object = self.http("PATCH", path, body, content_type).ok()
        return changed

    def node(self, name: str) -> Object:
        return self.get(f"/api/v1/nodes/{name}")

    def lease_renewed(self, node: str) -> datetime:
        lease = self.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}")
        return datetime.fromisoformat(lease["spec"]["renewTime"])

    def pods(self, selector: str = "") -> list[Object]:
        items: list[Object] = self.get(f"{self.path('pods')}?labelSelector={selector}")["items"]
        return items

    def until(self, found: Callable[[], Any], within_s: float = 30.0, what: str = "") -> Any:
        return until(found, within_s, what=what)

    def until_running(self, selector: str, number: int) -> list[Object]:
        """So many pods, all of them Ready and Running: a hollow kubelet calls a pod Ready that is still Pending."""

        def ready() -> list[Object]:
            pods = [pod for pod in self.pods(selector) if "deletionTimestamp" not in pod["metadata"]]
            return pods if len(pods) == number and all(map(runs, pods)) else []

        running: list[Object] = self.until(ready, what=f"{number} pods of {selector} run")
        return running


def condition(item: Object, kind: str) -> str:
    found = (one["status"] for one in item["status"].get("conditions") or () if one["type"] == kind)
    return next(found, "")


def runs(pod: Object) -> bool:
    return pod["status"].get("phase") == "Running" and condition(pod, "Ready") == "True"


def taints(node: Object) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in node["spec"].get("taints") or ()}


def pod(name: str, app: str = "", **spec: Any) -> Object:
    """A pod that asks for nothing and obeys its end at once."""
    own = {"containers": [{"name": "main", "image": "main:1"}], "terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app or name}}, "spec": own}


def deployment(name: str, replicas: int, **spec: Any) -> Object:
    template = pod(name, **spec)
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def budget(name: str, app: str, **limit: Any) -> Object:
    spec = {**limit, "selector": {"matchLabels": {"app": app}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
