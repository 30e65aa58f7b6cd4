"""Nonsense: whatever is sent, the answer is a Kubernetes Status or a good object, and the world lives on."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, story
from vgpuctl.sim.kube.api import Api
from vgpuctl.sim.kube.app import BODY_LIMIT, KubernetesApp
from vgpuctl.sim.kube.kinds import KINDS, Kind
from vgpuctl.sim.kube.shapes import INT_OR_PERCENT, QUANTITIES, SHAPES, TEXTS, TIME, TIMES
from vgpuctl.sim.kube.world import KubernetesWorld

TOKEN = "a-token"
FINE = {200, 201, 202}
REFUSALS = {400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 504}
STAYING = {"nodes": "worker-1", "deployments": "gateway", "jobs": "training", "poddisruptionbudgets": "gateway"}
PATCHES = [f"application/{kind}+json" for kind in ("merge-patch", "strategic-merge-patch", "json-patch")]


class Cluster:
    """The ASGI application in this process; time moves only when it is told to."""

    def __init__(self) -> None:
        self.clock = Clock(datetime(2026, 1, 5, 8, tzinfo=UTC))
        self.world = KubernetesWorld(self.clock, story(), Durations())
        for number in range(1, 5):
            self.world.boot(f"worker-{number}", 1)
        self.clock.advance_to(10)
        self._app = KubernetesApp(Api(self.world), Calls(), TOKEN)

    def live(self, seconds: float) -> None:
        self.clock.advance_to(self.clock.now_s + seconds)

    def send(
        self, method: str, target: str, body: bytes = b"", content_type: str = "application/json", token: str = TOKEN
    ) -> tuple[int, Any]:
        path, _, query = target.partition("?")
        headers = [(b"content-type", content_type.encode()), (b"authorization", f"Bearer {token}".encode())]
        scope: dict[str, Any] = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method}
        scope |= {"path": path, "raw_path": path.encode(), "query_string": query.encode(), "headers": headers}
        scope |= {"scheme": "https", "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "root_path": ""}
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        async def ask() -> None:
            await asyncio.wait_for(self._app(scope, receive, send), 20)

        asyncio.run(ask())
        text = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], json.loads(text)

    def judge(self, code: int, answer: Any) -> None:
        """A Status says what it refuses; 500 is for two budgets on one pod, and for versions that are no numbers."""
        assert isinstance(answer, dict) and answer.get("kind"), answer
        if code in FINE:
            return
        assert code in REFUSALS, (code, answer)
        assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Failure", code)
        assert code != 500 or "Internal error" not in answer["message"], answer


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture(autouse=True)
def _silent(caplog: pytest.LogCaptureFixture) -> Any:
    """What the server logs as an exception is a bug, whatever it answered."""
    yield
    assert [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR] == []


def base(kind: Kind) -> str:
    group = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
    return f"{group}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"


WORDS = st.sampled_from(
    [
        "",
        "a",
        "worker-1",
        "100%",
        "-5%",
        "1Gi",
        "5m",
        "In",
        "Exists",
        "NoExecute",
        "2026-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "a b",
        "é",
        "\ud800",
        "x" * 300,
        "web-0",
        "RollingUpdate",
        "Recreate",
        "Failed",
        "True",
        "metadata.name",
    ]
)
LEAVES = st.none() | st.booleans() | st.sampled_from([-1, 0, 1, 2, 3, 2**31, 2**63, 1.5, 1e308]) | WORDS
NONSENSE = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2), max_leaves=4
)


FITTING: dict[Any, st.SearchStrategy[Any]] = {
    str: WORDS,
    int: st.sampled_from([0, 1, 2, 3]),
    bool: st.booleans(),
    TEXTS: st.dictionaries(
        st.sampled_from(["app", "a", "kubernetes.io/os"]), st.sampled_from(["one", "linux", ""]), max_size=2
    ),
    QUANTITIES: st.dictionaries(
        st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.sampled_from(["1", "500m", "1Gi", 2]), max_size=2
    ),
    TIMES: st.dictionaries(WORDS, st.just("2026-01-01T00:00:00Z"), max_size=1),
    TIME: st.sampled_from(
        ["2026-01-01T00:00:00Z", "2026-01-05T08:00:00.000001Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"]
    ),
    INT_OR_PERCENT: st.sampled_from([0, 1, 2, "0%", "50%", "100%", "900%"]),
}


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 14).flatmap(lambda chance: NONSENSE if chance == 0 else good)


def near(schema: Any) -> st.SearchStrategy[Any]:
    """Values that nearly fit a shape: right for the most part, with anything at all here and there."""
    if isinstance(schema, dict) and schema:
        needed = {name[1:]: near(inner) for name, inner in schema.items() if name[0] == "!"}
        others = {name: near(inner) for name, inner in schema.items() if name[0] != "!"}
        return mostly(st.fixed_dictionaries(needed, optional=others))
    if isinstance(schema, list):
        return mostly(st.lists(near(schema[0]), max_size=2))
    return mostly(FITTING.get(schema, st.just({})) if not isinstance(schema, dict) else st.just({}))


METADATA = mostly(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["one", "two", "gateway", "worker-1", "training", "web-0"])},
        optional={
            "labels": near(TEXTS),
            "finalizers": st.just(["a/b"]),
            "annotations": near(TEXTS),
            "ownerReferences": mostly(st.just([])),
        },
    )
)


@st.composite
def objects(draw: st.DrawFn) -> tuple[Kind, Any]:
    kind = draw(st.sampled_from(KINDS))
    item = draw(near(SHAPES.get(kind.plural, {"spec": {}})))
    if isinstance(item, dict):
        item = {**item, "metadata": draw(METADATA)}
        if draw(st.integers(0, 9)) and isinstance(item.get("spec"), dict | None):
            item["spec"] = {**(item.get("spec") or {}), **_valid(kind.plural)}
    return kind, item


def _valid(plural: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "main"}]}
    template = {"metadata": {"labels": {"app": "one"}}, "spec": pod}
    whole = {"selector": {"matchLabels": {"app": "one"}}, "template": template}
    known: dict[str, Any] = dict.fromkeys(("deployments", "replicasets", "statefulsets", "daemonsets"), whole)
    known |= {"pods": pod, "jobs": {"template": template}}
    valid: dict[str, Any] = known.get(plural, {})
    return valid


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_wrong_types_anywhere_in_an_object_and_the_world_lives_on() -> None:
    """One world takes all that is sent, as a real one would, so an example cannot be made smaller alone. What was
    stored there must not stop any controller."""
    cluster = Cluster()

    @settings(max_examples=400, phases=[Phase.generate])
    @given(
        made=objects(),
        part=st.sampled_from(["", "", "/status", "/scale", "/eviction"]),
        patch=st.sampled_from(PATCHES),
        seconds=st.sampled_from([0, 1, 30]),
    )
    def send(made: tuple[Kind, Any], part: str, patch: str, seconds: int) -> None:
        send_in_every_way(cluster, made, (part, patch), seconds)

    send()
    cluster.live(4000)
    for kind in KINDS:
        for accept in ("", "?limit=1"):
            assert cluster.send("GET", f"{base(kind)}{accept}")[0] == 200
    assert cluster.send("GET", "/api/v1/nodes/worker-2")[1]["status"]["conditions"]


def send_in_every_way(cluster: Cluster, made: tuple[Kind, Any], to: tuple[str, str], seconds: int) -> None:
    (kind, item), (part, patch) = made, to
    body = encoded(item)
    metadata = item.get("metadata") if isinstance(item, dict) else None
    name = STAYING.get(kind.plural, metadata.get("name", "one") if isinstance(metadata, dict) else "one")
    for method, path, content_type in (
        ("POST", base(kind), "application/json"),
        ("PUT", f"{base(kind)}/{name}{part}", "application/json"),
        ("PATCH", f"{base(kind)}/{name}{part}", patch),
        ("POST", f"{base(kind)}/{name}/eviction", "application/json"),
        ("GET", f"{base(kind)}/{name}", ""),
    ):
        cluster.judge(*cluster.send(method, path, body if method != "GET" else b"", content_type))
    cluster.live(seconds)
    gone = "one" if kind.plural in STAYING else name
    cluster.judge(*cluster.send("DELETE", f"{base(kind)}/{gone}", body if seconds else b""))
    code, listed = cluster.send("GET", base(kind))
    assert (code, listed["kind"]) == (200, f"{kind.kind}List")


@given(
    operations=st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "op": st.sampled_from(["add", "remove", "replace", "test", "move", "copy", "x", 1]),
                "path": st.sampled_from(
                    [
                        "",
                        "/",
                        "/metadata",
                        "/metadata/labels/a",
                        "/spec/taints/0",
                        "/spec/taints/-",
                        "/spec/taints/x",
                        "/a/b/c",
                        1,
                        "/metadata/name",
                    ]
                ),
                "value": NONSENSE,
                "from": st.sampled_from(["/spec", "/x", "", 2]),
            },
        ),
        max_size=3,
    )
    | NONSENSE
)
def test_bad_json_patches(cluster: Cluster, operations: Any) -> None:
    cluster.judge(*cluster.send("PATCH", "/api/v1/nodes/worker-2?dryRun=All", encoded(operations), PATCHES[2]))


@given(
    change=st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "metadata",
                        "spec",
                        "labels",
                        "taints",
                        "conditions",
                        "status",
                        "$patch",
                        "$setElementOrder/taints",
                        "$deleteFromPrimitiveList/finalizers",
                        "$retainKeys",
                        "key",
                        "type",
                        "name",
                    ]
                ),
                inner | st.sampled_from(["delete", "replace", "merge"]),
                max_size=3,
            )
        ),
        max_leaves=6,
    ),
    kind=st.sampled_from(PATCHES[:2]),
)
def test_bad_merge_patches(cluster: Cluster, change: Any, kind: str) -> None:
    cluster.judge(*cluster.send("PATCH", "/api/v1/nodes/worker-2?dryRun=All", encoded(change), kind))


@given(
    body=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")),
    content_type=st.sampled_from(
        [
            "application/json",
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
def test_bodies_that_are_no_objects(cluster: Cluster, body: bytes, content_type: str, method: str, magic: bool) -> None:
    path = "/api/v1/namespaces/default/configmaps" + ("" if method == "POST" else "/none")
    cluster.judge(*cluster.send(method, path, (b"k8s\0" if magic else b"") + body, content_type))


@given(
    kind=st.sampled_from(["ConfigMap", "Deployment", "Job", "Namespace", "PodDisruptionBudget", "Pod"]),
    raw=st.binary(max_size=80),
)
def test_protobuf_with_a_good_head_and_any_body(cluster: Cluster, kind: str, raw: bytes) -> None:
    names = bytes([10, 2]) + b"v1" + bytes([18, len(kind)]) + kind.encode()
    body = b"k8s\0" + bytes([10, len(names)]) + names + bytes([18, len(raw)]) + raw
    cluster.judge(
        *cluster.send(
            "POST", "/api/v1/namespaces/default/configmaps?dryRun=All", body, "application/vnd.kubernetes.protobuf"
        )
    )


def test_a_patch_that_copies_its_copies_is_stopped(cluster: Cluster) -> None:
    copies = [{"op": "copy", "from": "/metadata", "path": f"/metadata/{number}"} for number in range(40)]
    assert cluster.send("PATCH", "/api/v1/nodes/worker-2", encoded(copies), PATCHES[2])[0] == 413


QUERY = st.sampled_from(
    [
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "dryRun",
        "timeoutSeconds",
        "includeObject",
        "pretty",
        "fieldManager",
        "gracePeriodSeconds",
        "propagationPolicy",
    ]
)
ODD = WORDS.filter(lambda word: word.isprintable()) | st.sampled_from(
    [
        "a=b,,",
        "a in (b",
        "!!",
        "a in ()",
        "x>1",
        "spec.nodeName=a",
        "metadata.name=worker-1",
        "status.phase!=",
        "-1",
        "99999999999999999999",
        "abc",
        "W10=",
        "WzEsImEiLCJiIl0=",
        "bnVsbA==",
        "0",
        "1",
        "NaN",
        "²",
    ]
)


@given(
    kind=st.sampled_from(KINDS),
    query=st.dictionaries(QUERY, ODD, max_size=3),
    method=st.sampled_from(["GET", "DELETE"]),
)
def test_odd_questions(cluster: Cluster, kind: Kind, query: dict[str, str], method: str) -> None:
    asked = "&".join(f"{name}={quote(value, errors='replace')}" for name, value in query.items())
    path = base(kind) if method == "GET" else f"{base(kind)}/none"
    cluster.judge(*cluster.send(method, f"{path}?{asked}"))


PARTS = st.sampled_from(
    [
        "api",
        "apis",
        "v1",
        "v2",
        "apps",
        "nodes",
        "pods",
        "namespaces",
        "default",
        "worker-1",
        "status",
        "scale",
        "eviction",
        "proxy",
        "log",
        "",
        "..",
        "é",
        "openapi",
        "v3",
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
    ]
)


@given(
    parts=st.lists(PARTS, max_size=8),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"]),
)
def test_unknown_paths_and_methods(cluster: Cluster, parts: list[str], method: str) -> None:
    code, answer = cluster.send(method, "/" + "/".join(parts) + "?dryRun=All", b"{}")
    assert code in FINE | REFUSALS - {500}
    assert isinstance(answer, dict)


@given(token=st.text(alphabet=st.characters(codec="latin-1"), max_size=30).filter(lambda text: text.strip() != TOKEN))
def test_wrong_tokens(cluster: Cluster, token: str) -> None:
    code, answer = cluster.send("GET", "/api/v1/nodes", token=token)
    assert (code, answer["reason"]) == (401, "Unauthorized")


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"metadata":{"labels":'])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_deep_and_large_bodies(cluster: Cluster, opening: str, method: str) -> None:
    path = "/api/v1/nodes" + ("" if method == "POST" else "/worker-2")
    content_type = PATCHES[0] if method == "PATCH" else "application/json"
    closing = {"[": "]"}.get(opening, "}" * opening.count("{"))
    for depth in (50, 900, 5_000, 100_000):
        body = (opening * depth + "1" + closing * depth).encode()
        cluster.judge(*cluster.send(method, f"{path}?dryRun=All", body, content_type))
    assert cluster.send(method, path, b" " * (BODY_LIMIT + 1), content_type)[0] == 413
