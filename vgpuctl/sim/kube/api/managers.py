"""managedFields, in short: who last wrote which of the fields that people argue about."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.kube.objects import Object

_PARTS = ("labels", "annotations")


def note(before: Object, after: Object, manager: str, now: str) -> None:
    """Give the fields that differ to `manager`, and take them from the others."""
    changed = _changed_fields(before, after)
    if not changed:
        return
    kept = []
    for entry in after["metadata"].get("managedFields") or []:
        fields = _without(entry["fieldsV1"], changed)
        if entry["manager"] == manager:
            changed = _joined(fields, changed)
        elif fields:
            kept.append(entry | {"fieldsV1": fields})
    entry = {"manager": manager, "operation": "Update", "apiVersion": after["apiVersion"], "time": now}
    after["metadata"]["managedFields"] = [*kept, entry | {"fieldsType": "FieldsV1", "fieldsV1": changed}]


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
    """A kind that knows no such field may have been given anything there."""
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


def _without(fields: Object, taken: Object) -> Object:
    result: Object = {}
    for key, inner in fields.items():
        if key not in taken:
            result[key] = inner
        elif inner and taken[key] and (left := _without(inner, taken[key])):
            result[key] = left
    return result


def _joined(one: Object, other: Object) -> Object:
    result = dict(one)
    for key, inner in other.items():
        result[key] = _joined(result.get(key) or {}, inner)
    return result
