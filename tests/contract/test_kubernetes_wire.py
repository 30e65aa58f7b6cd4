"""The simulated Kubernetes over TLS: what the real kubectl and plain HTTP requests see."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import socket
import ssl
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvicorn

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, story
from vgpuctl.sim.kube.app import BODY_LIMIT, kubernetes_app
from vgpuctl.sim.kube.kinds import KINDS
from vgpuctl.sim.kube.world import KubernetesWorld

TOKEN = "a-token-for-tests"
# Virtual seconds in a real one: stories pass quickly, and nothing in a test sleeps.
SPEED = 20.0
KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"
DAY_PROFILE = "v100-4q-4GB"
JSON, MERGE = "application/json", "application/merge-patch+json"


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any
    headers: dict[str, str]


class Served:
    """One world behind a real server in a thread of its own. Time stands still until `run_time` is called."""

    def __init__(self, folder: Path, ca: trustme.CA) -> None:
        self.clock = Clock(datetime.now(UTC))
        self.world = KubernetesWorld(self.clock, story(), Durations())
        for number in range(1, 5):
            self.world.boot(f"worker-{number}", 1)
        self.clock.advance_to(10)
        self.calls = Calls()
        self._ca_file = folder / "ca.pem"
        ca.cert_pem.write_to_path(str(self._ca_file))
        certificate = folder / "server.pem"
        ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
        # Named as TCP, or asyncio leaves Nagle's delay of 40 ms on each reply.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self.port = self._socket.getsockname()[1]
        self._kubeconfig = folder / "kubeconfig"
        self._kubeconfig.write_text(json.dumps(self._config()))
        app = kubernetes_app(self.world, self.calls, TOKEN)
        self.api = app.state.api
        config = uvicorn.Config(app, ssl_certfile=certificate, log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        self._environment = {**os.environ, "KUBECONFIG": str(self._kubeconfig), "HOME": str(folder)}
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Served:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop.set_result(asyncio.get_running_loop())
        await self._server.serve(sockets=[self._socket])

    def within(self, action: Callable[[], Any]) -> Any:
        """Do something in the world's own thread."""
        done: Future[Any] = Future()
        loop = self._loop.result(10)

        def act() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

        loop.call_soon_threadsafe(act)
        return done.result(20)

    def wait(self, seconds: float) -> None:
        self.within(lambda: self.clock.advance_to(self.clock.now_s + seconds))

    @contextmanager
    def running_time(self) -> Iterator[None]:
        """Let virtual time run, for a client that waits for something."""
        loop = self._loop.result(10)
        task = asyncio.run_coroutine_threadsafe(self._tick(), loop)
        yield
        task.cancel()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        began, start = loop.time(), self.clock.now_s
        while True:
            self.clock.advance_to(start + (loop.time() - began) * SPEED)
            await asyncio.sleep(0.005)

    def kubectl(self, *arguments: str, fails: bool = False) -> str:
        command = [str(KUBECTL), *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self._ca_file))
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=20)

    def http(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        connection = self.connect()
        payload = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        all_headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": JSON}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, payload, all_headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return Answer(response.status, json.loads(text) if text else None, dict(response.headers))

    def _config(self) -> dict[str, Any]:
        server = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": str(self._ca_file)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sim", "cluster": server}],
            "users": [{"name": "sim", "user": {"token": TOKEN}}],
            "contexts": [{"name": "sim", "context": {"cluster": "sim", "user": "sim"}}],
            "current-context": "sim",
        }


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
    watching = subprocess.Popen(command, env=served._environment, stdout=subprocess.PIPE, text=True)
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


def test_calls_are_counted_by_verb_and_resource(served: Served) -> None:
    served.kubectl("cordon", "worker-1")
    with served.running_time():
        served.kubectl("drain", "worker-1")
    counted = served.calls.as_dict()["kubernetes"]
    assert counted["PATCH nodes"] == 1
    assert counted["POST pods/eviction"] == counted["GET nodes"] - 1 == 1
    assert all(not method.startswith("GET /") for method in counted)


def refusals() -> Iterator[Any]:
    maps = "/api/v1/namespaces/default/configmaps"
    yield "no such object", ("GET", "/api/v1/nodes/nobody"), 404, "NotFound"
    yield "no such resource", ("GET", "/api/v1/things"), 404, "NotFound"
    yield "no such group", ("GET", "/apis/example/v1/things"), 404, "NotFound"
    yield "no such subresource", ("GET", "/api/v1/nodes/worker-1/proxy"), 404, "NotFound"
    yield "a name without a namespace", ("GET", "/api/v1/pods/one"), 404, "NotFound"
    yield (
        "no such namespace",
        ("POST", "/api/v1/namespaces/none/configmaps", {"metadata": {"name": "a"}}),
        404,
        "NotFound",
    )
    yield "not JSON", ("POST", maps, b"{bad"), 400, "BadRequest"
    yield "not text", ("POST", maps, b"\xff\xfe"), 400, "BadRequest"
    yield "not an object", ("POST", maps, [1]), 400, "BadRequest"
    yield (
        "another kind",
        ("POST", maps, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}),
        400,
        "BadRequest",
    )
    yield "no name", ("POST", maps, {"metadata": {}}), 422, "Invalid"
    yield "a bad name", ("POST", maps, {"metadata": {"name": "A b"}}), 422, "Invalid"
    yield "a bad label", ("POST", maps, {"metadata": {"name": "a", "labels": {"a b": "!"}}}), 422, "Invalid"
    yield "data of a wrong type", ("POST", maps, {"metadata": {"name": "a"}, "data": 1}), 400, "BadRequest"
    yield "POST to an object", ("POST", "/api/v1/nodes/worker-1", {}), 405, "MethodNotAllowed"
    yield "an unknown method", ("TRACE", "/api/v1/nodes"), 405, "MethodNotAllowed"
    yield "DELETE of a status", ("DELETE", "/api/v1/nodes/worker-1/status"), 405, "MethodNotAllowed"
    yield "GET of an eviction", ("GET", "/api/v1/namespaces/default/pods/a/eviction"), 405, "MethodNotAllowed"
    yield "a patch without its type", ("PATCH", "/api/v1/nodes/worker-1", {}), 415, "UnsupportedMediaType"
    yield "an unknown field", ("GET", "/api/v1/pods?fieldSelector=spec.none=a"), 400, "BadRequest"
    yield "a bad selector", ("GET", "/api/v1/pods?labelSelector=a,,!!"), 400, "BadRequest"
    yield "a bad limit", ("GET", "/api/v1/pods?limit=x"), 400, "BadRequest"
    yield "a bad page", ("GET", "/api/v1/pods?continue=abc"), 400, "BadRequest"
    yield "a version to come", ("GET", "/api/v1/pods?resourceVersion=999999999"), 504, "Timeout"


@pytest.mark.parametrize(("request_", "code", "reason"), [pytest.param(*rest, id=name) for name, *rest in refusals()])
def test_refusals_are_status_objects(resting: Served, request_: tuple[Any, ...], code: int, reason: str) -> None:
    answer = resting.http(*request_)
    assert (answer.code, answer.body["kind"], answer.body["code"]) == (code, "Status", code)
    assert (answer.body["status"], answer.body["reason"]) == ("Failure", reason)


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic YTpi", f"Bearer {TOKEN}x"])
def test_without_the_token_nothing_is_told(resting: Served, header: str) -> None:
    answer = resting.http("GET", "/api/v1/nodes", Authorization=header)
    assert (answer.code, answer.body["reason"]) == (401, "Unauthorized")


def test_a_body_that_is_too_large_is_refused(resting: Served) -> None:
    answer = resting.http("POST", "/api/v1/namespaces/default/configmaps", b"x" * (BODY_LIMIT + 1))
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
    assert resting.http("GET", "/api/v1/nodes").code == 200


@pytest.mark.parametrize(
    ("content_type", "patch", "code"),
    [
        (MERGE, {"metadata": {"labels": {"a": "b", "kubernetes.io/os": None}}}, 200),
        ("application/strategic-merge-patch+json", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, 200),
        ("application/json-patch+json", [{"op": "add", "path": "/metadata/labels/a~1b", "value": "c"}], 200),
        ("application/json-patch+json", [{"op": "test", "path": "/spec/providerID", "value": "x"}], 422),
        ("application/json-patch+json", {"op": "add"}, 400),
        (MERGE, {"metadata": {"resourceVersion": "1"}}, 409),
        (MERGE, {"metadata": {"name": "other"}}, 400),
        (MERGE, {"metadata": None}, 400),
        (MERGE, [1], 400),
        (MERGE, {"spec": {"unschedulable": "yes"}}, 400),
        ("application/apply-patch+yaml", {}, 415),
    ],
)
def test_patches(served: Served, content_type: str, patch: object, code: int) -> None:
    answer = served.http("PATCH", "/api/v1/nodes/worker-1", patch, Content_Type=content_type)
    assert answer.code == code, answer.body


def test_lists_come_in_pages(resting: Served) -> None:
    names: list[str] = []
    token = ""
    for _ in range(10):
        page = resting.http("GET", f"/api/v1/pods?limit=5&continue={token}").body
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert names == [item["metadata"]["name"] for item in resting.http("GET", "/api/v1/pods").body["items"]]
    assert len(names) == 12


def test_a_watch_streams_and_ends_when_its_time_is_up(served: Served) -> None:
    connection = served.connect()
    path = "/api/v1/nodes?watch=true&timeoutSeconds=30&allowWatchBookmarks=true&fieldSelector=metadata.name=worker-1"
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    response = connection.getresponse()
    assert json.loads(response.readline())["type"] == "ADDED"
    served.http("PATCH", "/api/v1/nodes/worker-1", {"metadata": {"labels": {"a": "b"}}}, Content_Type=MERGE)
    assert json.loads(response.readline())["object"]["metadata"]["labels"]["a"] == "b"
    served.wait(31)
    *_, last = [json.loads(line) for line in response.read().splitlines()]
    assert last["type"] == "BOOKMARK"
    connection.close()


def test_a_watch_whose_client_left_is_forgotten(served: Served) -> None:
    connection = served.connect()
    connection.request("GET", "/api/v1/nodes?watch=true", headers={"Authorization": f"Bearer {TOKEN}"})
    response = connection.getresponse()
    response.readline()
    assert len(served.api.watches) == 1
    response.close()
    connection.close()
    for _ in range(200):
        if not served.api.watches:
            break
        served.http("GET", "/version")
    assert not served.api.watches


def test_both_forms_of_an_event(served: Served) -> None:
    event = {"metadata": {"name": "told"}, "involvedObject": {"kind": "Node", "name": "worker-1"}, "message": "hello"}
    assert served.http("POST", "/api/v1/namespaces/default/events", event).code == 201
    newer = served.http("GET", "/apis/events.k8s.io/v1/namespaces/default/events/told").body
    assert (newer["note"], newer["regarding"]["name"]) == ("hello", "worker-1")


WORDS = [None, True, -1, 0, 3, 1.5, "", "a", "100%", "2026-01-01T00:00:00Z", [], {}, [None], [{}], {"a": 1}, {"a": "b"}]
FIELDS = ["metadata", "spec", "status", "data", "labels", "annotations", "name", "replicas", "selector", "template"]
FIELDS += ["containers", "taints", "conditions", "unschedulable", "parallelism", "maxUnavailable", "matchLabels"]
FIELDS += ["nodeSelector", "tolerations", "resources", "requests", "renewTime", "finalizers", "ownerReferences"]


def mangled(chance: random.Random, depth: int = 0) -> Any:
    if depth > 3 or chance.random() < 0.3:
        return chance.choice(WORDS)
    return {chance.choice(FIELDS): mangled(chance, depth + 1) for _ in range(chance.randint(0, 4))}


@pytest.mark.parametrize("seed", range(4))
def test_nonsense_is_refused_and_harms_nothing(served: Served, seed: int) -> None:
    """Whatever is sent and stored, the server never fails and the world's clock runs on."""
    chance = random.Random(seed)
    names = {"nodes": "worker-1", "deployments": "gateway", "jobs": "training", "poddisruptionbudgets": "gateway"}
    for number in range(80):
        kind = chance.choice(KINDS)
        base = f"/apis/{kind.group}/v1" if kind.group else "/api/v1"
        base += f"{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"
        body = mangled(chance)
        if isinstance(body, dict) and chance.random() < 0.8:
            body["metadata"] = {"name": f"n-{number}"}
        name = names.get(kind.plural, "x")
        part = chance.choice(["", "", "/status"])
        posted = served.http("POST", base, body)
        patched = served.http("PATCH", f"{base}/{name}{part}", body, Content_Type=MERGE)
        assert max(posted.code, patched.code) < 500, (kind, body, posted.body, patched.body)
        served.wait(1)
    served.wait(400)
    assert served.http("GET", "/api/v1/nodes").code == 200
