"""What there is: versions, groups and resources, in the old form and the aggregated one."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.sim.kube import openapi
from vgpuctl.sim.kube.kinds import EVICTION, GROUPS, SCALE, Kind
from vgpuctl.sim.kube.nodes import VERSION
from vgpuctl.sim.kube.objects import Object
from vgpuctl.sim.kube.request import Reply, Request

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_AGGREGATED = "as=APIGroupDiscoveryList"
_AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_FOREIGN = {EVICTION: ("policy", "v1", "Eviction"), SCALE: ("autoscaling", "v1", "Scale")}


def answer(request: Request) -> Reply | None:
    """None when the path is not one of discovery."""
    if request.method != "GET":
        return None
    path = request.path.rstrip("/") or "/"
    if _AGGREGATED in request.accept and path in ("/api", "/apis"):
        groups = [group for group in GROUPS if bool(group) == (path == "/apis")]
        return Reply(200, _discovery_list(groups), _AGGREGATED_TYPE)
    if document := openapi.answer(path):
        return Reply(200, document)
    found = _PATHS.get(path)
    return Reply(200, found()) if found else None


def _version() -> Object:
    major, minor, _ = VERSION[1:].split(".")
    build = {"gitCommit": "0" * 40, "gitTreeState": "clean", "buildDate": "2026-01-01T00:00:00Z"}
    return {"major": major, "minor": minor, "gitVersion": VERSION, **build} | _BUILD


_BUILD = {"goVersion": "go1.26", "compiler": "gc", "platform": "linux/amd64"}


def _core_versions() -> Object:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _group_list() -> Object:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in GROUPS if name]}


def _group(name: str) -> Object:
    version = {"groupVersion": _group_version(name), "version": _version_of(name)}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _version_of(group: str) -> str:
    """Each group is served in one version."""
    return GROUPS[group][0].version


def _group_version(group: str) -> str:
    return f"{group}/{_version_of(group)}" if group else _version_of(group)


def _resource_list(group: str) -> Object:
    resources = [entry for kind in GROUPS[group] for entry in _resources(kind)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": _group_version(group),
        "resources": resources,
    }


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
    if name in _FOREIGN:
        entry["group"], entry["version"], entry["kind"] = _FOREIGN[name]
    else:
        entry["kind"] = kind.kind
    return entry | {"verbs": _subverbs(name)}


def _subverbs(name: str) -> list[str]:
    return ["create"] if name == EVICTION else ["get", "patch", "update"]


def _discovery_list(groups: list[str]) -> Object:
    items = [_discovered(group) for group in groups]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(group: str) -> Object:
    resources = [_discovered_kind(kind) for kind in GROUPS[group]]
    version = {"version": _version_of(group), "resources": resources, "freshness": "Current"}
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
    of = _FOREIGN.get(name, (kind.group, kind.version, kind.kind))
    return {"subresource": name, "responseKind": _response_kind(*of), "verbs": _subverbs(name)}


def _response_kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}


def _resources_of(group: str) -> Callable[[], Object]:
    return lambda: _resource_list(group)


_PATHS: dict[str, Callable[[], Object]] = {
    "/version": _version,
    "/api": _core_versions,
    "/apis": _group_list,
    "/api/v1": _resources_of(""),
    **{f"/apis/{_group_version(group)}": _resources_of(group) for group in GROUPS if group},
}
