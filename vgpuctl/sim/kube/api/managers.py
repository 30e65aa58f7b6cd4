"""managedFields in short form: which manager last wrote each field of metadata, spec, status and data."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.kube.objects import Object

_PARTS = ("labels", "annotations")


def record_manager(before: Object, after: Object, manager: str, now: str) -> None:
    """Give the fields that changed to `manager`, and remove them from the other managers."""
    # Kubernetes: an update without a change leaves `managedFields` alone. It names programs, never people.
    changed = _changed_fields(before, after)
    if not changed:
        return
    others = []
    for entry in after["metadata"].get("managedFields") or []:
        fields = _removed(entry["fieldsV1"], changed)
        if entry["manager"] == manager:
            changed = _merged(fields, changed)
        elif fields:
            others.append(entry | {"fieldsV1": fields})
    # Kubernetes: server-side apply is not simulated, so each entry is an Update.
    entry = {"manager": manager, "operation": "Update", "apiVersion": after["apiVersion"], "time": now}
    after["metadata"]["managedFields"] = [*others, entry | {"fieldsType": "FieldsV1", "fieldsV1": changed}]


def _changed_fields(before: Object, after: Object) -> Object:
    old = {part: before["metadata"].get(part) or {} for part in _PARTS}
    new = {part: after["metadata"].get(part) or {} for part in _PARTS}
    fields: Object = {}
    if metadata := _difference(old, new):
        fields["f:metadata"] = metadata
    for part in ("spec", "status", "data"):
        if inner := _difference(_mapping(before.get(part)), _mapping(after.get(part))):
            fields[f"f:{part}"] = inner
    return fields


def _mapping(part: Any) -> Object:
    """Return the part if it is a mapping. A kind without such a field may contain anything there."""
    return part if isinstance(part, dict) else {}


def _difference(old: Any, new: Any) -> Object:
    fields: Object = {}
    for key, value in new.items():
        former = old.get(key)
        if value == former:
            continue
        inner = isinstance(value, dict) and bool(value)
        fields[f"f:{key}"] = _difference(former if isinstance(former, dict) else {}, value) if inner else {}
    return fields


def _removed(fields: Object, removed: Object) -> Object:
    result: Object = {}
    for key, inner in fields.items():
        if key not in removed:
            result[key] = inner
        elif inner and removed[key] and (left := _removed(inner, removed[key])):
            result[key] = left
    return result


def _merged(one: Object, other: Object) -> Object:
    result = dict(one)
    for key, inner in other.items():
        result[key] = _merged(result.get(key) or {}, inner)
    return result
