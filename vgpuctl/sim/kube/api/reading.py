"""GET: one object, or a list by selectors and in pages."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.sim.kube.api import errors, events
from vgpuctl.sim.kube.api.kinds import SCALE, Kind
from vgpuctl.sim.kube.api.pages import Pages, token_of
from vgpuctl.sim.kube.api.request import Reply, Request, Target
from vgpuctl.sim.kube.api.scale import scale_of
from vgpuctl.sim.kube.api.selectors import field_terms, field_test, object_label_test
from vgpuctl.sim.kube.objects import Object
from vgpuctl.sim.kube.store import Store

_SELECTORS = ("labelSelector", "fieldSelector")
Test = Callable[[Object], bool]


def existing(store: Store, target: Target) -> Object:
    """Return the object that the path names; raise NotFound if there is none."""
    item = store.get(target.kind.plural, target.namespace, target.name)
    if item is None:
        raise errors.not_found(target.kind, target.name)
    return item


def is_absent(store: Store, target: Target) -> bool:
    return store.get(target.kind.plural, target.namespace, target.name) is None


def get(store: Store, target: Target) -> Object:
    item = existing(store, target)
    return scale_of(item) if target.subresource == SCALE else events.shown(target.kind, item)


def test_of(request: Request, target: Target) -> Test:
    """Return a test for the objects that the request selects by namespace, name, labels and fields."""
    labels = object_label_test(request.query.get("labelSelector", ""))
    fields = field_test(target.kind, request.query.get("fieldSelector", ""))
    namespace, name = target.namespace, target.name

    def test(item: Object) -> bool:
        metadata = item["metadata"]
        if (namespace and metadata["namespace"] != namespace) or (name and metadata["name"] != name):
            return False
        return labels(item) and fields(item)

    return test


def matching(store: Store, request: Request, target: Target) -> list[Object]:
    test = test_of(request, target)
    return [item for item in _candidates(store, request, target) if test(item)]


def _candidates(store: Store, request: Request, target: Target) -> list[Object]:
    for field, equal, value in field_terms(target.kind, request.query.get("fieldSelector", "")):
        if equal and value and field in target.kind.indexed:
            return store.where(target.kind.plural, field, value)
    return store.sorted(target.kind.plural, target.namespace)


def page(store: Store, pages: Pages, request: Request, target: Target) -> tuple[list[Object], Object]:
    """Return the objects of one page, and the list's metadata."""
    _check_version(store, request)
    # Kubernetes: a continue token belongs to one query.
    asked = "\n".join((target.resource, target.namespace, *(request.query.get(name, "") for name in _SELECTORS)))
    if token := request.query.get("continue"):
        # Kubernetes: the token names its version already.
        if request.query.get("resourceVersion"):
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        snapshot, start = pages.remainder(token, asked)
        items, version = snapshot.items[start:], snapshot.version
    else:
        items, version = matching(store, request, target), store.version
    # Kubernetes: a watch goes on from the list's version, without a gap.
    metadata: Object = {"resourceVersion": str(version)}
    limit = request.number("limit") or 0
    if 0 < limit < len(items):
        if not token:
            pages.add_snapshot(version, asked, items)
        metadata["continue"] = token_of(version, items[limit - 1])
        # Kubernetes: with a selector the server does not know how many objects are left.
        if not any(map(request.query.get, _SELECTORS)):
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return [events.shown(target.kind, item) for item in items], metadata


def listing(kind: Kind, items: list[Object], metadata: Object) -> Reply:
    """Return a list. Its objects carry no kind and apiVersion, except those of custom resources."""
    # Measured: kube-apiserver 1.36 repeats the kind only in lists of custom resources.
    bare = (
        items
        if kind.custom
        else [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in items]
    )
    body = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": bare}
    return Reply(200, body)


def requested_version(request: Request) -> int:
    text = request.query.get("resourceVersion") or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise errors.internal(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def _check_version(store: Store, request: Request) -> None:
    asked = requested_version(request)
    # Measured: kube-apiserver 1.36 answers 504 to a version that is to come.
    if asked > store.version:
        raise errors.too_large_resource_version(asked, store.version)
