"""What the API server accepts in roles and their bindings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.kube.api.kinds import RBAC, Kind
from vgpuctl.sim.kube.objects import Object

Cause = tuple[str, str, str]
_LISTS: Object = {field: [str] for field in ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")}
ROLE: Object = {"rules": [_LISTS], "aggregationRule": {}}
BINDING: Object = {
    "subjects": [dict.fromkeys(("kind", "name", "namespace", "apiGroup"), str)],
    "roleRef": dict.fromkeys(("kind", "name", "apiGroup"), str),
}
ACCOUNT = "ServiceAccount"
_SUBJECTS = (ACCOUNT, "User", "Group")
_REFERENCED = {"RoleBinding": ("Role", "ClusterRole"), "ClusterRoleBinding": ("ClusterRole",)}


def name_causes(name: str) -> list[Cause]:
    """Return why a path segment cannot have this name."""
    if name in (".", ".."):
        return [("metadata.name", "FieldValueInvalid", f"Invalid value: \"{name}\": may not be '{name}'")]
    return [
        ("metadata.name", "FieldValueInvalid", f"Invalid value: \"{name}\": may not contain '{found}'")
        for found in "/%"
        if found in name
    ]


def causes(kind: Kind, item: Object) -> Iterator[Cause]:
    """Yield field, reason and message of each thing that is wrong with a role or a binding."""
    if kind.kind in ("Role", "ClusterRole"):
        for number, rule in enumerate(item.get("rules") or ()):
            yield from _rule_causes(rule, f"rules[{number}]", kind)
    elif kind.kind in _REFERENCED:
        yield from _reference_causes(item.get("roleRef") or {}, _REFERENCED[kind.kind])
        for number, subject in enumerate(item.get("subjects") or ()):
            yield from _subject_causes(subject, f"subjects[{number}]", kind)


def _rule_causes(rule: Object, path: str, kind: Kind) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield _required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        why = []
        if kind.namespaced:
            why.append("namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            why.append("rules cannot apply to both regular resources and non-resource URLs")
        for each in why:
            yield f"{path}.nonResourceURLs", "FieldValueInvalid", f"Invalid value: {_json(urls)}: {each}"
        return
    if not rule.get("apiGroups"):
        yield _required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield _required(f"{path}.resources", "resource rules must supply at least one resource")


def _reference_causes(reference: Object, kinds: tuple[str, ...]) -> Iterator[Cause]:
    if reference.get("apiGroup") not in (None, "", RBAC):
        yield _unsupported("roleRef.apiGroup", reference["apiGroup"], (RBAC,))
    if reference.get("kind") not in kinds:
        yield _unsupported("roleRef.kind", reference.get("kind") or "", kinds)
    if not reference.get("name"):
        yield _required("roleRef.name")


def _subject_causes(subject: Object, path: str, binding: Kind) -> Iterator[Cause]:
    kind, group = subject.get("kind") or "", subject.get("apiGroup") or ""
    if not subject.get("name"):
        yield _required(f"{path}.name")
    if kind not in _SUBJECTS:
        yield _unsupported(f"{path}.kind", kind, _SUBJECTS)
    elif kind != ACCOUNT and group not in ("", RBAC):
        yield _unsupported(f"{path}.apiGroup", group, (RBAC,))
    elif kind == ACCOUNT and group:
        yield _unsupported(f"{path}.apiGroup", group, ("",))
    # Measured: kube-apiserver 1.36 takes a RoleBinding whose ServiceAccount has no namespace. It binds nothing.
    if kind == ACCOUNT and not subject.get("namespace") and not binding.namespaced:
        yield _required(f"{path}.namespace")


def changed_reference(binding: Object) -> Cause:
    """Return why a binding cannot be given another role."""
    # Measured: kube-apiserver 1.36 shows the names of Go's fields here.
    reference = {name: binding["roleRef"].get(field, "") for field, name in _GO_NAMES.items()}
    return "roleRef", "FieldValueInvalid", f"Invalid value: {_json(reference)}: cannot change roleRef"


_GO_NAMES = {"apiGroup": "APIGroup", "kind": "Kind", "name": "Name"}


def fill_in_binding(item: Object) -> None:
    """Add the groups that the server adds by itself."""
    item["roleRef"] = {"apiGroup": RBAC, **{key: value for key, value in item["roleRef"].items() if value}}
    for subject in item.get("subjects") or ():
        if subject["kind"] != ACCOUNT:
            subject["apiGroup"] = RBAC


def _required(field: str, why: str = "") -> Cause:
    return field, "FieldValueRequired", f"Required value: {why}" if why else "Required value"


def _unsupported(field: str, value: str, known: tuple[str, ...]) -> Cause:
    named = ", ".join(f'"{each}"' for each in known)
    return field, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {named}'


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
