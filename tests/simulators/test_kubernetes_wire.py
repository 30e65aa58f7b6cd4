"""Plain HTTP over TLS: refusals, patches, pages, streams, and nonsense."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.support.kubernetes_served import TOKEN, Served
from vgpuctl.sim.kube.app import BODY_LIMIT
from vgpuctl.sim.kube.kinds import KINDS

MERGE = "application/merge-patch+json"


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
    yield "no number", ("POST", maps, b'{"metadata":{"name":"a"},"x":NaN}'), 400, "BadRequest"
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
    endless = {"metadata": {"name": "a"}, "spec": {"minAvailable": "9" * 5000 + "%", "selector": {}}}
    yield (
        "an endless share",
        ("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", endless),
        422,
        "Invalid",
    )
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
        (MERGE, {"spec": {"unschedulable": "yes"}}, 422),
        (MERGE, {"spec": {"providerID": "vsphere://other"}}, 422),
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
    other = {"metadata": {"name": "other"}, "regarding": {"kind": "Node", "name": "worker-2"}, "note": "bye"}
    assert served.http("POST", "/apis/events.k8s.io/v1/namespaces/default/events", other).code == 201
    core = served.http("GET", "/api/v1/namespaces/default/events/other").body
    assert (core["message"], core["involvedObject"]["name"]) == ("bye", "worker-2")


WORDS: list[Any] = [None, True, -1, 0, 3, 1.5, "", "a", "100%", "2026-01-01T00:00:00Z"]
WORDS += [[], {}, [None], [{}], {"a": 1}, {"a": "b"}]
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


def test_an_answer_goes_out_in_one_piece(resting: Served) -> None:
    head, _, body = resting.first_record("/version").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body)["major"] == "1"
