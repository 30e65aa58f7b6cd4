"""The Kubernetes objects that grant rights to accounts: roles, their bindings, and what these need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.kube.rights import Right, Scope

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Who gets the rights: a ServiceAccount, a User or a Group."""

    kind: str
    name: str
    namespace: str = ""

    def reference(self) -> Object:
        if self.kind == "ServiceAccount":
            return {"kind": self.kind, "name": self.name, "namespace": self.namespace}
        return {"kind": self.kind, "name": self.name, "apiGroup": RBAC}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """These rights for these subjects. `name`: of the roles and bindings. `namespace`: vgpuctl's own.

    `labels`: those of the namespace.
    """

    name: str
    namespace: str
    rights: tuple[Right, ...]
    subjects: tuple[Subject, ...]
    labels: Mapping[str, str] = field(default_factory=dict)

    def objects(self) -> Iterator[tuple[Object, list[Right]]]:
        """Yield the objects in the order in which they must be created, each role with the rights of its rules."""
        # Kubernetes: a Role needs its namespace.
        metadata: Object = {"name": self.namespace} | ({"labels": dict(self.labels)} if self.labels else {})
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, []
        for account in self._accounts():
            yield account, []
        for scope in Scope:
            if rights := [right for right in self.rights if right.scope is scope]:
                yield self._role(scope, rights), rights
                yield self._binding(scope), []

    def _accounts(self) -> Iterator[Object]:
        """Yield the ServiceAccounts in our own namespace; those of other namespaces are their owners' affair."""
        for subject in self.subjects:
            if subject.namespace == self.namespace:
                metadata = {"name": subject.name, "namespace": subject.namespace}
                yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}

    def _role(self, scope: Scope, rights: list[Right]) -> Object:
        kind = "ClusterRole" if scope is Scope.CLUSTER else "Role"
        return self._object(kind, scope) | {"rules": [rule(right) for right in rights]}

    def _binding(self, scope: Scope) -> Object:
        kind = "ClusterRole" if scope is Scope.CLUSTER else "Role"
        return self._object(f"{kind}Binding", scope) | {
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": self.name},
            "subjects": [subject.reference() for subject in self.subjects],
        }

    def _object(self, kind: str, scope: Scope) -> Object:
        namespace = {Scope.CLUSTER: "", Scope.HEARTBEATS: scope.value, Scope.OWN: self.namespace}[scope]
        metadata = {"name": self.name} | ({"namespace": namespace} if namespace else {})
        return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata}


def rule(right: Right) -> Object:
    names = {"resourceNames": list(right.names)} if right.names else {}
    return {"apiGroups": [right.group], "resources": list(right.resources)} | names | {"verbs": list(right.verbs)}


def comment(right: Right) -> str:
    """Return what a rule is for, and what happens without it."""
    text = f"{right.purpose[0].upper()}{right.purpose[1:]}. Without it: {right.without}."
    return f"{text} {right.note}" if right.note else text
