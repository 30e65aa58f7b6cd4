"""As little OpenAPI as kubectl needs to leave validation to the server."""

from __future__ import annotations

from vgpuctl.sim.kube.kinds import GROUPS, Kind
from vgpuctl.sim.kube.objects import Object

_ROOT = "/openapi/v3"


def answer(path: str) -> Object | None:
    if path == _ROOT:
        return {"paths": {_base(group): {"serverRelativeURL": f"{_ROOT}/{_base(group)}"} for group in GROUPS}}
    for group, kinds in GROUPS.items():
        if path == f"{_ROOT}/{_base(group)}":
            return _document({f"/{_base(group)}/{kind.plural}/{{name}}": {"patch": _patch(kind)} for kind in kinds})
    return None


def _base(group: str) -> str:
    return f"apis/{group}/v1" if group else "api/v1"


def _document(paths: Object) -> Object:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "components": {"schemas": {}},
    }


def _patch(kind: Kind) -> Object:
    """That PATCH takes `fieldValidation` is all that is asked."""
    names = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    return {"parameters": [parameter], "responses": {}, "x-kubernetes-group-version-kind": names}
