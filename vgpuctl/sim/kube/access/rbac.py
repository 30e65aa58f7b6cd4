"""Role-based access control: whether the cluster's roles and bindings allow a user something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.kube.access.attributes import Attributes, attributes_of
from vgpuctl.sim.kube.access.users import User, account_name
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.api.request import Request
from vgpuctl.sim.kube.objects import Object, name_of
from vgpuctl.sim.kube.store import Store

ALL = "*"
_BINDINGS = {"clusterrolebindings": "ClusterRoleBinding", "rolebindings": "RoleBinding"}


@dataclass(frozen=True, slots=True)
class Decision:
    """`reason`: which binding allows it, or which bindings name roles that do not exist."""

    allowed: bool
    reason: str = ""


class Authorizer:
    """Decides by the objects in the store, so a change of a role counts at once. A real server learns of it a moment
    later.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, request: Request) -> None:
        """Refuse a request that its user has no right to."""
        if not request.user.may_do_all:
            self.demand(request.user, attributes_of(request.method, request.path, request.query))

    def demand(self, user: User, asked: Attributes) -> None:
        """Raise ApiError if the user may not do what is asked."""
        decision = self.decide(user, asked)
        if not decision.allowed:
            raise errors.not_allowed(user.name, asked, decision.reason)

    def decide(self, user: User, asked: Attributes) -> Decision:
        # Kubernetes: the group's rights are no RBAC object, so that no mistake in one locks the administrator out.
        if user.may_do_all:
            return Decision(True)
        dangling = []
        for reason, binding in self._bindings_of(user, asked.namespace):
            role = self.role_of(binding)
            if role is None:
                dangling.append(_not_found(binding["roleRef"]))
            elif any(allows(rule, asked) for rule in rules_of(role)):
                return Decision(True, reason)
        return Decision(False, f"RBAC: {_joined(dangling)}" if dangling else "")

    def rules_for(self, user: User, namespace: str) -> list[Object]:
        """Return the rules that hold for the user in this namespace, or in the whole cluster without one."""
        roles = (self.role_of(binding) for _, binding in self._bindings_of(user, namespace))
        return [rule for role in roles if role is not None for rule in rules_of(role)]

    def role_of(self, binding: Object) -> Object | None:
        reference = binding["roleRef"]
        if reference["kind"] == "ClusterRole":
            return self._store.get("clusterroles", "", reference["name"])
        return self._store.get("roles", binding["metadata"]["namespace"], reference["name"])

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[str, Object]]:
        """Yield each binding of the user, with the words by which a review explains it."""
        # Kubernetes: bindings of the whole cluster first. A binding in a namespace holds only there.
        for plural in ("clusterrolebindings", *(["rolebindings"] if namespace else [])):
            for binding in self._store.sorted(plural, namespace if plural == "rolebindings" else ""):
                subject = next((each for each in binding.get("subjects") or () if _is(user, each)), None)
                if subject is not None:
                    yield _explained(_BINDINGS[plural], binding, subject), binding


def rules_of(role: Object) -> list[Object]:
    return role.get("rules") or []


def allows(rule: Object, asked: Attributes) -> bool:
    """Return True if one rule of a role covers what is asked."""
    if not _has(rule, "verbs", asked.verb):
        return False
    if asked.path:
        return any(_covers_path(found, asked.path) for found in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return _has(rule, "apiGroups", asked.group) and _covers_resource(rule, asked) and (not names or asked.name in names)


def _has(rule: Object, field: str, value: str) -> bool:
    found: Any = rule.get(field) or ()
    return ALL in found or value in found


def _covers_resource(rule: Object, asked: Attributes) -> bool:
    # Kubernetes: a rule for `pods` does not cover `pods/eviction`; `*/eviction` covers every kind's evictions.
    return _has(rule, "resources", asked.whole_resource) or (
        bool(asked.subresource) and f"*/{asked.subresource}" in (rule.get("resources") or ())
    )


def _covers_path(pattern: str, path: str) -> bool:
    # Kubernetes: only a `*` at the end is a pattern.
    return pattern in (ALL, path) or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


def _is(user: User, subject: Object) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
    return account_name(subject.get("namespace", ""), subject["name"]) == user.name


def _explained(kind: str, binding: Object, subject: Object) -> str:
    reference = binding["roleRef"]
    name = name_of(binding)
    if namespace := binding["metadata"].get("namespace"):
        name = f"{name}/{namespace}"
    whom = f"{subject['name']}/{subject['namespace']}" if subject.get("namespace") else subject["name"]
    role = f'{reference["kind"]} "{reference["name"]}"'
    return f'RBAC: allowed by {kind} "{name}" of {role} to {subject["kind"]} "{whom}"'


def _not_found(reference: Object) -> str:
    return f'{reference["kind"].lower()}.rbac.authorization.k8s.io "{reference["name"]}" not found'


def _joined(texts: list[str]) -> str:
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
