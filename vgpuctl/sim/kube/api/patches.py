"""The three kinds of patches: merge, strategic merge, JSON patch."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.kube.api.errors import ApiError, bad_request, too_large
from vgpuctl.sim.kube.objects import Object, copied

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

# Lists that a strategic merge patch merges by this key of their elements. It replaces all other lists.
_MERGE_KEYS = {
    "conditions": "type",
    "addresses": "type",
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "ownerReferences": "uid",
    "imagePullSecrets": "name",
    "topologySpreadConstraints": "topologyKey",
}
# Without a limit a few operations that copy copies would fill the memory.
# kube-apiserver: JSONPatchMaxCopyBytes, 3 MiB.
COPY_LIMIT = 3 * 1024 * 1024
_MERGED_LISTS = ("finalizers",)


def patched(item: Object, content_type: str, patch: Any) -> Object:
    """Return a patched copy of the object."""
    if content_type == JSON_PATCH:
        return _json_patched(copied(item), patch)
    if not isinstance(patch, dict):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    try:
        return dict(_merged(item, patch) if content_type == MERGE else _strategic(item, patch))
    except (TypeError, AttributeError, ValueError):
        # For example the patch has a list where the object has a map.
        raise bad_request("error decoding patch: its shape does not fit the object") from None


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        # RFC 7386: null deletes a field.
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _strategic(target: Any, patch: Object) -> Object:
    # Kubernetes: `$patch` says what to do with a map or a list element instead of merging it.
    if patch.get("$patch") == "replace":
        return {key: copied(value) for key, value in patch.items() if key != "$patch"}
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        _strategic_field(result, key, value)
    return result


def _strategic_field(result: Object, key: str, value: Any) -> None:
    if key.startswith("$deleteFromPrimitiveList/"):
        field = key.partition("/")[2]
        result[field] = [item for item in result.get(field) or [] if item not in value]
    elif key.startswith("$"):
        return  # $setElementOrder and $retainKeys only refine what the rest of the patch says
    elif value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        result[key] = _strategic(result.get(key), value)
    elif isinstance(value, list) and key in _MERGE_KEYS:
        result[key] = _strategic_list(result.get(key) or [], value, _MERGE_KEYS[key])
    # Kubernetes: finalizers are merged as a set; other lists without a merge key are replaced.
    elif isinstance(value, list) and key in _MERGED_LISTS:
        result[key] = [*(old := result.get(key) or []), *(item for item in value if item not in old)]
    else:
        result[key] = copied(value)


def _strategic_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if {"$patch": "replace"} in patch:
        return [copied(item) for item in patch if item != {"$patch": "replace"}]
    result = list(target)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        found = next((n for n, other in enumerate(result) if other.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            result = [other for other in result if other.get(key) != item[key]]
        elif found is None:
            result.append(_strategic({}, item))
        else:
            result[found] = _strategic(result[found], item)
    return result


def _json_patched(item: Object, operations: Any) -> Object:
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    copies_left = COPY_LIMIT
    try:
        for operation in operations:
            if operation["op"] == "copy":
                copies_left -= len(str(_value_at(item, operation["from"])))
                if copies_left < 0:
                    raise too_large(COPY_LIMIT)
            _apply(item, operation)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        # Measured: kube-apiserver 1.36 answers 422 to a test that fails and to a path that is not there.
        # To a patch that is no list it answers 400.
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message, {}) from None
    return item


def _apply(item: Object, operation: Object) -> None:
    kind, path = operation["op"], operation["path"]
    if kind == "add":
        _insert_at(item, path, copied(operation["value"]))
    elif kind == "remove":
        _remove_at(item, path)
    elif kind == "replace":
        _remove_at(item, path)
        _insert_at(item, path, copied(operation["value"]))
    elif kind == "test":
        if _value_at(item, path) != operation["value"]:
            raise ValueError(path)
    elif kind in ("move", "copy"):
        value = _remove_at(item, operation["from"]) if kind == "move" else copied(_value_at(item, operation["from"]))
        _insert_at(item, path, value)
    else:
        raise ValueError(kind)


def _parts(path: str) -> list[str]:
    head, *rest = path.split("/")
    if head or not rest:
        raise ValueError(path)
    # RFC 6901: `~1` is a slash, `~0` a tilde. Annotations need the slash.
    return [part.replace("~1", "/").replace("~0", "~") for part in rest]


def _value_at(value: Any, path: str) -> Any:
    for part in _parts(path):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _parent_of(item: Object, path: str) -> tuple[Any, str]:
    *parents, last = _parts(path)
    value: Any = item
    for part in parents:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value, last


def _remove_at(item: Object, path: str) -> Any:
    parent, last = _parent_of(item, path)
    return parent.pop(int(last)) if isinstance(parent, list) else parent.pop(last)


def _insert_at(item: Object, path: str, value: Any) -> None:
    parent, last = _parent_of(item, path)
    if not isinstance(parent, list):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent.insert(int(last), value)
