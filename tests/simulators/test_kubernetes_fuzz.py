"""Nonsense: whatever is sent, the answer is a Kubernetes Status or a good object, and the world lives on."""

from __future__ import annotations

import logging
import random
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.kubernetes_asked import JSON, Asked
from tests.support.kubernetes_cluster import BEGAN, boot_the_day
from tests.support.kubernetes_nonsense import (
    CHANGES,
    ODD,
    OPERATIONS,
    PARTS,
    QUERY,
    base,
    mangled,
    objects,
)
from vgpuctl.sim.kube.api.app import BODY_LIMIT
from vgpuctl.sim.kube.api.kinds import KINDS, Kind
from vgpuctl.sim.logins import Logins
from vgpuctl.sim.world import World

TOKEN = "a-token"
FINE = {200, 201, 202}
REFUSALS = {400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 504}
STAYING = {"nodes": "worker-1", "deployments": "gateway", "jobs": "training", "poddisruptionbudgets": "gateway"}
PATCHES = [f"application/{kind}+json" for kind in ("merge-patch", "strategic-merge-patch", "json-patch")]


def a_day() -> Asked:
    world = World(began=BEGAN, logins=Logins(token=TOKEN))
    boot_the_day(world)
    return Asked(world)


@pytest.fixture(scope="module")
def asked() -> Asked:
    """One world for all tests: none needs what another has sent."""
    return a_day()


def judge(code: int, answer: Any) -> None:
    """A Status says what it refuses; 500 is for two budgets on one pod, and for versions that are no numbers."""
    assert isinstance(answer, dict) and answer.get("kind"), answer
    if code in FINE:
        return
    assert code in REFUSALS, (code, answer)
    assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Failure", code)
    assert code != 500 or "Internal error" not in answer["message"], answer


@pytest.fixture(autouse=True)
def _silent(caplog: pytest.LogCaptureFixture) -> Any:
    """What the server logs as an exception is a bug, whatever it answered."""
    yield
    assert [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR] == []


def test_wrong_types_anywhere_in_an_object_and_the_world_lives_on() -> None:
    """One world takes all that is sent, as a real one would, so an example cannot be made smaller alone. What was
    stored there must not stop any controller."""
    asked = a_day()

    @settings(max_examples=400, phases=[Phase.generate])
    @given(
        made=objects(),
        part=st.sampled_from(["", "", "/status", "/scale", "/eviction"]),
        patch=st.sampled_from(PATCHES),
        seconds=st.sampled_from([0, 1, 30]),
    )
    def send(made: tuple[Kind, Any], part: str, patch: str, seconds: int) -> None:
        send_in_every_way(asked, made, (part, patch), seconds)

    send()
    asked.world.wait(4000)
    for kind in KINDS:
        for accept in ("", "?limit=1"):
            assert asked.send("GET", f"{base(kind)}{accept}")[0] == 200
    assert asked.send("GET", "/api/v1/nodes/worker-2")[1]["status"]["conditions"]


def send_in_every_way(asked: Asked, made: tuple[Kind, Any], to: tuple[str, str], seconds: int) -> None:
    (kind, item), (part, patch) = made, to
    metadata = item.get("metadata") if isinstance(item, dict) else None
    name = STAYING.get(kind.plural, metadata.get("name", "one") if isinstance(metadata, dict) else "one")
    for method, path, content_type in (
        ("POST", base(kind), JSON),
        ("PUT", f"{base(kind)}/{name}{part}", JSON),
        ("PATCH", f"{base(kind)}/{name}{part}", patch),
        ("POST", f"{base(kind)}/{name}/eviction", JSON),
        ("GET", f"{base(kind)}/{name}", ""),
    ):
        judge(*asked.send(method, path, item if method != "GET" else b"", content_type))
    asked.world.wait(seconds)
    gone = "one" if kind.plural in STAYING else name
    judge(*asked.send("DELETE", f"{base(kind)}/{gone}", item if seconds else b""))
    code, listed = asked.send("GET", base(kind))
    assert (code, listed["kind"]) == (200, f"{kind.kind}List")


@pytest.mark.parametrize("seed", range(4))
def test_nonsense_is_refused_and_harms_nothing(seed: int) -> None:
    """Whatever is sent and stored, the server never fails and the world's clock runs on."""
    chance, asked = random.Random(seed), a_day()
    for number in range(80):
        kind, body = chance.choice(KINDS), mangled(chance)
        if isinstance(body, dict) and chance.random() < 0.8:
            body["metadata"] = {"name": f"n-{number}"}
        path = f"{base(kind)}/{STAYING.get(kind.plural, 'x')}{chance.choice(['', '', '/status'])}"
        posted = asked.send("POST", base(kind), body)
        patched = asked.send("PATCH", path, body, PATCHES[0])
        assert max(posted[0], patched[0]) < 500, (kind, body, posted, patched)
        asked.world.wait(1)
    asked.world.wait(400)
    assert asked.send("GET", "/api/v1/nodes")[0] == 200


@given(operations=OPERATIONS)
def test_bad_json_patches(asked: Asked, operations: Any) -> None:
    judge(*asked.send("PATCH", "/api/v1/nodes/worker-2?dryRun=All", operations, PATCHES[2]))


@given(change=CHANGES, kind=st.sampled_from(PATCHES[:2]))
def test_bad_merge_patches(asked: Asked, change: Any, kind: str) -> None:
    judge(*asked.send("PATCH", "/api/v1/nodes/worker-2?dryRun=All", change, kind))


@given(
    body=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")),
    content_type=st.sampled_from(
        [
            JSON,
            "application/vnd.kubernetes.protobuf",
            "application/yaml",
            "text/plain",
            "",
            "a;b;c",
            *PATCHES,
            "application/apply-patch+yaml",
        ]
    ),
    method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    magic=st.booleans(),
)
def test_bodies_that_are_no_objects(asked: Asked, body: bytes, content_type: str, method: str, magic: bool) -> None:
    path = "/api/v1/namespaces/default/configmaps" + ("" if method == "POST" else "/none")
    judge(*asked.send(method, path, (b"k8s\0" if magic else b"") + body, content_type))


@given(
    kind=st.sampled_from(["ConfigMap", "Deployment", "Job", "Namespace", "PodDisruptionBudget", "Pod"]),
    raw=st.binary(max_size=80),
)
def test_protobuf_with_a_good_head_and_any_body(asked: Asked, kind: str, raw: bytes) -> None:
    names = bytes([10, 2]) + b"v1" + bytes([18, len(kind)]) + kind.encode()
    body = b"k8s\0" + bytes([10, len(names)]) + names + bytes([18, len(raw)]) + raw
    judge(
        *asked.send(
            "POST", "/api/v1/namespaces/default/configmaps?dryRun=All", body, "application/vnd.kubernetes.protobuf"
        )
    )


def test_a_patch_that_copies_its_copies_is_stopped(asked: Asked) -> None:
    copies = [{"op": "copy", "from": "/metadata", "path": f"/metadata/{number}"} for number in range(40)]
    assert asked.send("PATCH", "/api/v1/nodes/worker-2", copies, PATCHES[2])[0] == 413


@given(
    kind=st.sampled_from(KINDS),
    query=st.dictionaries(QUERY, ODD, max_size=3),
    method=st.sampled_from(["GET", "DELETE"]),
)
def test_odd_questions(asked: Asked, kind: Kind, query: dict[str, str], method: str) -> None:
    query_text = "&".join(f"{name}={quote(value, errors='replace')}" for name, value in query.items())
    path = base(kind) if method == "GET" else f"{base(kind)}/none"
    judge(*asked.send(method, f"{path}?{query_text}"))


@given(
    parts=st.lists(PARTS, max_size=8),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"]),
)
def test_unknown_paths_and_methods(asked: Asked, parts: list[str], method: str) -> None:
    code, answer = asked.send(method, "/" + "/".join(parts) + "?dryRun=All", b"{}")
    assert code in FINE | REFUSALS - {500}
    assert isinstance(answer, dict)


@given(token=st.text(alphabet=st.characters(codec="latin-1"), max_size=30).filter(lambda text: text.strip() != TOKEN))
def test_wrong_tokens(asked: Asked, token: str) -> None:
    code, answer = asked.send("GET", "/api/v1/nodes", token=token)
    assert (code, answer["reason"]) == (401, "Unauthorized")


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"metadata":{"labels":'])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_deep_and_large_bodies(asked: Asked, opening: str, method: str) -> None:
    path = "/api/v1/nodes" + ("" if method == "POST" else "/worker-2")
    content_type = PATCHES[0] if method == "PATCH" else JSON
    closing = {"[": "]"}.get(opening, "}" * opening.count("{"))
    for depth in (50, 900, 5_000, 100_000):
        body = (opening * depth + "1" + closing * depth).encode()
        judge(*asked.send(method, f"{path}?dryRun=All", body, content_type))
    assert asked.send(method, path, b" " * (BODY_LIMIT + 1), content_type)[0] == 413
