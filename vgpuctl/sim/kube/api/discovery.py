"""Discovery: versions, groups and resources, in the old and the aggregated form."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.sim.kube.api import openapi
from vgpuctl.sim.kube.api.kinds import EVICTION, SCALE, TOKEN, Groups, Kind
from vgpuctl.sim.kube.api.request import Reply, Request
from vgpuctl.sim.kube.machines.nodes import VERSION
from vgpuctl.sim.kube.objects import Object

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_AGGREGATED = "as=APIGroupDiscoveryList"
_AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCE_KINDS = {
    EVICTION: ("policy", "v1", "Eviction"),
    SCALE: ("autoscaling", "v1", "Scale"),
    TOKEN: ("authentication.k8s.io", "v1", "TokenRequest"),
}


def answer(request: Request, served: Groups) -> Reply | None:
    """Return None if the path is not one of discovery."""
    if request.method != "GET":
        return None
    path = request.path.rstrip("/") or "/"
    # kubectl asks for the aggregated form: two requests instead of one for each group.
    if _AGGREGATED in request.accept and path in ("/api", "/apis"):
        groups = {name: kinds for name, kinds in served.items() if bool(name) == (path == "/apis")}
        return Reply(200, _discovery_list(groups), _AGGREGATED_TYPE)
    found = openapi.answer(path, served) or _document(path, served)
    return Reply(200, found) if found else None


def _document(path: str, served: Groups) -> Object | None:
    if path in _FIXED:
        return _FIXED[path]()
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(kinds) for kinds in _named(served)]}
    for kinds in served.values():
        if path == openapi.base(kinds):
            return _resource_list(kinds)
        if path == f"/apis/{kinds[0].group}":
            return {"kind": "APIGroup", "apiVersion": "v1"} | _group(kinds)
    return None


def _named(served: Groups) -> list[tuple[Kind, ...]]:
    return [kinds for name, kinds in served.items() if name]


def _version() -> Object:
    major, minor, _ = VERSION[1:].split(".")
    build = {"gitCommit": "0" * 40, "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z"}
    return {"major": major, "minor": minor, "gitVersion": VERSION, **build} | _BUILD


_BUILD = {"goVersion": "go1.26", "compiler": "gc", "platform": "linux/amd64"}


def _core_versions() -> Object:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _group(kinds: tuple[Kind, ...]) -> Object:
    version = {"groupVersion": kinds[0].api_version, "version": kinds[0].version}
    return {"name": kinds[0].group, "versions": [version], "preferredVersion": version}


def _resource_list(kinds: tuple[Kind, ...]) -> Object:
    resources = [entry for kind in kinds for entry in _resources(kind)]
    version = kinds[0].api_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _resources(kind: Kind) -> list[Object]:
    main: Object = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
    }
    main["verbs"] = _VERBS
    main |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    main |= {"categories": list(kind.categories)} if kind.categories else {}
    return [main, *(_subresource(kind, name) for name in kind.subresources)]


def _subresource(kind: Kind, name: str) -> Object:
    entry: Object = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
    if name in _SUBRESOURCE_KINDS:
        entry["group"], entry["version"], entry["kind"] = _SUBRESOURCE_KINDS[name]
    else:
        entry["kind"] = kind.kind
    return entry | {"verbs": _subverbs(name)}


def _subverbs(name: str) -> list[str]:
    return ["create"] if name in (EVICTION, TOKEN) else ["get", "patch", "update"]


def _discovery_list(groups: Groups) -> Object:
    items = [_discovered(kinds) for kinds in groups.values()]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(kinds: tuple[Kind, ...]) -> Object:
    group, resources = kinds[0].group, [_discovered_kind(kind) for kind in kinds]
    version = {"version": kinds[0].version, "resources": resources, "freshness": "Current"}
    return {"metadata": {"name": group} if group else {}, "versions": [version]}


def _discovered_kind(kind: Kind) -> Object:
    entry: Object = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind.group, kind.version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _VERBS,
    }
    entry |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    entry |= {"categories": list(kind.categories)} if kind.categories else {}
    if kind.subresources:
        entry["subresources"] = [_discovered_part(kind, name) for name in kind.subresources]
    return entry


def _discovered_part(kind: Kind, name: str) -> Object:
    gvk = _SUBRESOURCE_KINDS.get(name, (kind.group, kind.version, kind.kind))
    return {"subresource": name, "responseKind": _response_kind(*gvk), "verbs": _subverbs(name)}


def _response_kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}


_FIXED: dict[str, Callable[[], Object]] = {"/version": _version, "/api": _core_versions}
