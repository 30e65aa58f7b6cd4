"""Requests that make no sense, for the simulated Kubernetes: values, objects, patches, questions and paths."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from vgpuctl.sim.kube.api.kinds import KINDS, Kind
from vgpuctl.sim.kube.api.resource_lists import QUANTITIES
from vgpuctl.sim.kube.api.shapes import INT_OR_PERCENT, SHAPES, TEXTS, TIME, TIMES


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
        st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
        st.sampled_from(["1", "500m", "1Gi", 2, 0.5, "1e3", "-1", "9Ei"]),
        max_size=2,
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


OPERATIONS = (
    st.lists(
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

CHANGES = st.recursive(
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
)


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

FIELDS = ["metadata", "spec", "status", "data", "labels", "annotations", "name", "replicas", "selector", "template"]
FIELDS += ["containers", "taints", "conditions", "unschedulable", "parallelism", "maxUnavailable", "matchLabels"]
FIELDS += ["nodeSelector", "tolerations", "resources", "requests", "renewTime", "finalizers", "ownerReferences"]
VALUES: list[Any] = [None, True, -1, 0, 3, 1.5, "", "a", "100%", "2026-01-01T00:00:00Z"]
VALUES += [[], {}, [None], [{}], {"a": 1}, {"a": "b"}]


def mangled(chance: random.Random, depth: int = 0) -> Any:
    """Known fields in any order and depth, with values of any type."""
    if depth > 3 or chance.random() < 0.3:
        return chance.choice(VALUES)
    return {chance.choice(FIELDS): mangled(chance, depth + 1) for _ in range(chance.randint(0, 4))}
