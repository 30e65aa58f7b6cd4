"""POST, PUT and PATCH: checked as the real server checks, then stored."""

from __future__ import annotations

import json
from typing import Any

from vgpuctl.sim.kube.access import escalation
from vgpuctl.sim.kube.access.rbac import Authorizer
from vgpuctl.sim.kube.api import defaults, errors, events, managers, protobuf, rules, shapes
from vgpuctl.sim.kube.api.kinds import SCALE, STATUS, Kind
from vgpuctl.sim.kube.api.patches import JSON_PATCH, MERGE, STRATEGIC, patched
from vgpuctl.sim.kube.api.reading import existing
from vgpuctl.sim.kube.api.request import Request, Target, parsed
from vgpuctl.sim.kube.api.scale import scale_of, scaled
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.objects import Object, copied, is_leaving, name_of, timestamp, uid_of, without_nulls

_SERVER_FIELDS = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_FOREIGN_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


def create(context: ControllerContext, request: Request, target: Target) -> Object:
    item = events.stored(target.kind, _decoded(request, target.kind))
    # Kubernetes: an object that is to be created cannot have a version yet.
    if item["metadata"].pop("resourceVersion", ""):
        raise errors.bad_request("resourceVersion should not be set on objects to be created")
    return _create(context, request, target, item)


def make(context: ControllerContext, request: Request, target: Target) -> Object:
    """Create the object that a PUT names, as after its deletion. Its version is ignored, and its uid is not."""
    item = events.stored(target.kind, _decoded(request, target.kind))
    _check_name(item, target)
    metadata = item["metadata"]
    if uid := metadata.get("uid"):
        # Measured: kube-apiserver 1.36, with the key in etcd.
        key = f"/registry/{target.kind.plural}/{target.namespace}/{target.name}"
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
        error = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
        raise errors.conflict(target.kind, target.name, error)
    metadata.pop("resourceVersion", None)
    return _create(context, request, target, item)


def _create(context: ControllerContext, request: Request, target: Target, item: Object) -> Object:
    metadata = item["metadata"]
    for field in (*_SERVER_FIELDS, "managedFields"):
        metadata.pop(field, None)
    _set_namespace(item, target)
    if not metadata.get("name") and metadata.get("generateName"):
        # Kubernetes: generateName gets five random characters.
        metadata["name"] = f"{metadata['generateName']}{context.store.suffix()}"
    check_namespace(context, target.kind, metadata.get("name", ""), target.namespace)
    shapes.check(target.kind, item)
    item = shapes.canonical(target.kind, item)
    # Kubernetes: where status is a subresource, a request for the object cannot change it.
    if STATUS in target.kind.subresources:
        item.pop("status", None)
    prepared = context.prepared(target.kind.plural, item)
    escalation.check(Authorizer(context.store), request.user, prepared)
    managers.record_manager({"metadata": {}}, prepared, request.manager, timestamp(context.clock.utc()))
    if request.dry_run:
        return _dry_run_created(context, target.kind, prepared)
    return events.shown(target.kind, context.store.create(target.kind.plural, prepared))


def check_namespace(context: ControllerContext, kind: Kind, name: str, namespace: str) -> None:
    """Refuse to create in a namespace that does not exist or is terminating."""
    if not kind.namespaced:
        return
    found = context.store.get("namespaces", "", namespace)
    if found is None:
        raise errors.ApiError(
            404, "NotFound", f'namespaces "{namespace}" not found', {"name": namespace, "kind": "namespaces"}
        )
    if is_leaving(found):
        raise errors.namespace_terminating(kind, name, namespace)


def replace(context: ControllerContext, request: Request, target: Target) -> Object:
    before = existing(context.store, target)
    if target.subresource == SCALE:
        scale = _object(request.json())
        return scale_of(_store(context, request, target.kind, before, scaled(before, scale)))
    item = events.stored(target.kind, _decoded(request, target.kind))
    _set_namespace(item, target)
    _check_name(item, target)
    stored = _store(context, request, target.kind, before, _new_state(target, before, item))
    return events.shown(target.kind, stored)


def patch(context: ControllerContext, request: Request, target: Target) -> Object:
    content_type = request.content_type.split(";")[0].strip()
    # Measured: kube-apiserver 1.36 answers 415 to a strategic patch of a custom resource.
    if content_type not in (MERGE, STRATEGIC, JSON_PATCH) or (target.kind.custom and content_type == STRATEGIC):
        raise errors.unsupported_media_type()
    before = existing(context.store, target)
    change = _patch_of(request)
    if target.subresource == SCALE:
        scale = patched(scale_of(before), content_type, change)
        return scale_of(_store(context, request, target.kind, before, scaled(before, scale)))
    item = patched(events.shown(target.kind, before), content_type, change)
    item = events.stored(target.kind, item)
    if not isinstance(item.get("metadata"), dict) or item["metadata"].get("name") != target.name:
        raise errors.bad_request("metadata.name: Invalid value: field is immutable")
    _check_patched(target.kind, before, item)
    stored = _store(context, request, target.kind, before, _new_state(target, before, item))
    return events.shown(target.kind, stored)


def _check_patched(kind: Kind, before: Object, item: Object) -> None:
    """An object that no longer decodes after a patch is reported as a bad patch, not as a bad request."""
    try:
        shapes.check_types(kind, _without_nulls(before, item), before=before)
    except errors.ApiError as error:
        # Measured: kube-apiserver 1.36 answers 422 here, and 400 to the same object in a POST.
        raise errors.bad_patch(json.dumps(item, separators=(",", ":")), error.message) from None


def _store(context: ControllerContext, request: Request, kind: Kind, before: Object, item: Object) -> Object:
    if kind.versioned and item["metadata"].get("resourceVersion") in (None, "", "0"):
        raise errors.version_missing(kind, name_of(item))
    shapes.check(kind, item, before=before)
    item = shapes.canonical(kind, item, before=before)
    defaults.fill_in(kind.plural, item)
    rules.check_change(kind, before, item)
    escalation.check(Authorizer(context.store), request.user, item, before)
    now = timestamp(context.clock.utc())
    managers.record_manager(before, item, request.manager, now)
    if request.dry_run:
        present = before["metadata"]["resourceVersion"]
        if item["metadata"].get("resourceVersion") not in (None, "", "0", present):
            raise errors.conflict(kind, name_of(item))
        return item
    stored = context.store.update(kind.plural, item)
    metadata = stored["metadata"]
    # Measured: with its last finalizer a deleted object is gone.
    waiting = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    if is_leaving(stored) and not waiting and kind.plural != "namespaces":
        context.store.remove(kind.plural, metadata.get("namespace", ""), metadata["name"])
    return stored


def _check_name(item: Object, target: Target) -> None:
    sent = item["metadata"].get("name") or ""
    if sent != target.name:
        raise errors.bad_request(f"the name of the object ({sent}) does not match the name on the URL ({target.name})")


def _without_nulls(before: Object, item: Object) -> Object:
    """Drop null fields. Parts that are unchanged are shared with the stored object, which is never changed in place."""
    # Decision 0015: only the parts that a patch has touched are looked at.
    same = {key for key, value in item.items() if key != "metadata" and value is before.get(key)}
    return {key: value if key in same else without_nulls(value) for key, value in item.items() if value is not None}


def _new_state(target: Target, before: Object, item: Object) -> Object:
    """Return the object to store: the server's own fields stay, and a request changes either the status or everything
    else.
    """
    item = _without_nulls(before, item) | {"kind": before["kind"], "apiVersion": before["apiVersion"]}
    sent = item["metadata"]
    # Kubernetes: a UID in an update is a precondition.
    if sent.get("uid") and sent["uid"] != uid_of(before):
        why = f"Precondition failed: UID in precondition: {sent['uid']}, UID in object meta: {uid_of(before)}"
        raise errors.conflict(target.kind, target.name, why)
    # Measured: kube-apiserver 1.36 ignores everything but the status here.
    if target.subresource == STATUS:
        result: Object = copied(before)
        result["status"] = item.get("status") or {}
        result["metadata"]["resourceVersion"] = sent.get("resourceVersion")
        return result
    for field in (*_SERVER_FIELDS, "managedFields"):
        sent.pop(field, None)
        if field in before["metadata"]:
            sent[field] = copied(before["metadata"][field])
    if STATUS in target.kind.subresources:
        item.pop("status", None)
        if "status" in before:
            item["status"] = before["status"]
    for emptied in [key for key in ("labels", "annotations", "finalizers", "ownerReferences") if not sent.get(key)]:
        sent.pop(emptied, None)
    return item


def _decoded(request: Request, kind: Kind) -> Object:
    media_type = request.content_type.split(";")[0].strip()
    if media_type not in ("application/json", protobuf.MEDIA_TYPE, ""):
        message = f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
        raise errors.ApiError(415, "UnsupportedMediaType", message)
    item = protobuf.decoded(request.body) if protobuf.is_protobuf(request) else _object(request.json())
    sent = (item.get("apiVersion"), item.get("kind"))
    # Measured: kube-apiserver 1.36 answers 400 to another kind than the path's.
    if sent[1] is not None and sent != (kind.api_version, kind.kind):
        message = f'{sent[1]} in version "{sent[0]}" cannot be handled as a {kind.kind}'
        raise errors.bad_request(message)
    item |= {"apiVersion": kind.api_version, "kind": kind.kind}
    if not isinstance(item.setdefault("metadata", {}), dict):
        raise errors.bad_request(f"json: cannot unmarshal into Go struct field {kind.kind}.metadata")
    return item


_ACCEPTED = f"application/json, {protobuf.MEDIA_TYPE}"


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise errors.bad_request("json: cannot unmarshal into Go value of type map[string]interface {}")
    return dict(without_nulls(value))


def _patch_of(request: Request) -> Any:
    try:
        return parsed(request.body)
    except ValueError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from None


def _set_namespace(item: Object, target: Target) -> None:
    metadata = item["metadata"]
    if metadata.get("namespace", "") not in ("", target.namespace):
        raise errors.bad_request(_FOREIGN_NAMESPACE)
    metadata.pop("namespace", None)
    if target.namespace:
        metadata["namespace"] = target.namespace


def _dry_run_created(context: ControllerContext, kind: Kind, item: Object) -> Object:
    # Measured: with kube-apiserver 1.36 a dry run answers with the object and its uid, and creates nothing.
    if context.store.get(kind.plural, item["metadata"].get("namespace", ""), name_of(item)) is not None:
        raise errors.already_exists(kind, name_of(item))
    item["metadata"]["creationTimestamp"] = timestamp(context.clock.utc())
    return item
