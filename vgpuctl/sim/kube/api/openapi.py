"""As much OpenAPI as kubectl needs to leave validation to the server."""

from __future__ import annotations

from vgpuctl.sim.kube.api.kinds import Groups, Kind
from vgpuctl.sim.kube.objects import Object

_ROOT = "/openapi/v3"


def answer(path: str, served: Groups) -> Object | None:
    bases = {base(kinds): kinds for kinds in served.values()}
    if path == _ROOT:
        return {"paths": {found[1:]: {"serverRelativeURL": f"{_ROOT}{found}"} for found in bases}}
    found = path.removeprefix(_ROOT)
    if found == path or found not in bases:
        return None
    return _document({f"{found}/{kind.plural}/{{name}}": {"patch": _patch(kind)} for kind in bases[found]})


def base(kinds: tuple[Kind, ...]) -> str:
    """Return the path below which the kinds of a group are served."""
    return f"/apis/{kinds[0].api_version}" if kinds[0].group else "/api/v1"


def _document(paths: Object) -> Object:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "components": {"schemas": {}},
    }


def _patch(kind: Kind) -> Object:
    """Describe a PATCH with `fieldValidation`: kubectl looks for nothing else."""
    names = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    # kubectl validates by itself if the server does not offer this parameter.
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    return {"parameters": [parameter], "responses": {}, "x-kubernetes-group-version-kind": names}
