"""What one request is answered: refusals, patches, pages, and both forms of an event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kubernetes_asked import Asked
from tests.support.kubernetes_cluster import BEGAN, MERGE, PODS, boot_the_day
from tests.support.quantities import NO_QUANTITIES, QUANTITIES
from vgpuctl.sim.world import World

EVENTS = "/api/v1/namespaces/default/events"
NEWER_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest.fixture
def asked() -> Asked:
    return Asked(World(began=BEGAN))


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
    yield "DELETE of all namespaces' pods", ("DELETE", "/api/v1/pods"), 405, "MethodNotAllowed"
    yield "DELETE of all namespaces' Jobs", ("DELETE", "/apis/batch/v1/jobs"), 405, "MethodNotAllowed"
    yield "DELETE of all namespaces", ("DELETE", "/api/v1/namespaces"), 405, "MethodNotAllowed"
    yield "POST to all namespaces", ("POST", "/api/v1/pods", {}), 405, "MethodNotAllowed"
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
def test_refusals_are_status_objects(asked: Asked, request_: tuple[Any, ...], code: int, reason: str) -> None:
    answered, status = asked.send(*request_)
    assert (answered, status["kind"], status["code"]) == (code, "Status", code)
    assert (status["status"], status["reason"]) == ("Failure", reason)


def requests(cpu: object, name: str = "asks") -> dict[str, Any]:
    container = {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(("sent", "stored"), [*QUANTITIES.items()])
def test_quantities_are_stored_in_their_canonical_form(asked: Asked, sent: object, stored: str) -> None:
    code, pod = asked.send("POST", f"{PODS}?dryRun=All", requests(sent))
    assert (code, pod["spec"]["containers"][0]["resources"]["requests"]) == (201, {"cpu": stored})


@pytest.mark.parametrize("sent", NO_QUANTITIES)
def test_what_is_no_quantity_cannot_be_decoded(asked: Asked, sent: object) -> None:
    code, status = asked.send("POST", PODS, requests(sent))
    assert (code, status["reason"]) == (400, "BadRequest")


def test_a_negative_quantity_is_decoded_and_refused(asked: Asked) -> None:
    code, status = asked.send("POST", PODS, requests("-1"))
    message = 'Invalid value: "-1": must be greater than or equal to 0'
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "spec.containers[0].resources.requests[cpu]"}
    assert (code, status["details"]["causes"]) == (422, [cause])


@pytest.mark.parametrize(("cpu", "fits"), [("1e3", False), ("7e0", True), (0.5, True), ("1Pi", False), ("100u", True)])
def test_the_scheduler_counts_with_any_form_of_a_quantity(asked: Asked, cpu: object, fits: bool) -> None:
    boot_the_day(asked.world)
    assert asked.send("POST", PODS, requests(cpu))[0] == 201
    asked.world.wait(1)
    assert ("nodeName" in asked.send("GET", f"{PODS}/asks")[1]["spec"]) is fits


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
def test_patches(asked: Asked, content_type: str, patch: object, code: int) -> None:
    answered, told = asked.send("PATCH", "/api/v1/nodes/worker-1", patch, content_type)
    assert answered == code, told


def test_lists_come_in_pages(asked: Asked) -> None:
    boot_the_day(asked.world)
    names: list[str] = []
    token = ""
    for _ in range(10):
        _, page = asked.send("GET", f"/api/v1/pods?limit=5&continue={token}")
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert names == [item["metadata"]["name"] for item in asked.send("GET", "/api/v1/pods")[1]["items"]]
    assert len(names) == 16


def test_both_forms_of_an_event(asked: Asked) -> None:
    event = {"metadata": {"name": "told"}, "involvedObject": {"kind": "Node", "name": "worker-1"}, "message": "hello"}
    assert asked.send("POST", EVENTS, event)[0] == 201
    _, newer = asked.send("GET", f"{NEWER_EVENTS}/told")
    assert (newer["note"], newer["regarding"]["name"]) == ("hello", "worker-1")
    other = {"metadata": {"name": "other"}, "regarding": {"kind": "Node", "name": "worker-2"}, "note": "bye"}
    assert asked.send("POST", NEWER_EVENTS, other)[0] == 201
    _, core = asked.send("GET", f"{EVENTS}/other")
    assert (core["message"], core["involvedObject"]["name"]) == ("bye", "worker-2")
