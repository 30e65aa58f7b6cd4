"""Whether our account may do something, as Kubernetes itself says: one SelfSubjectAccessReview for each question.

Every account may create such reviews.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from vgpuctl.kube.client import Client, NotAllowedError, NotFoundError
from vgpuctl.kube.leases import ACTING
from vgpuctl.model.requests import DeletePod, Evict, PatchNode, Request, ScaleWorkload

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One verb on one resource. Without a namespace: in all of them. `option`: of `vgpuctl rights kubernetes`."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    option: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        place = f" in the namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{place}"


def may(client: Client, permission: Permission) -> bool:
    """True if the server allows it. If the server cannot answer this question, the request itself will."""
    attributes = {
        field: value
        for field in ("verb", "group", "resource", "subresource", "namespace", "name")
        if (value := getattr(permission, field))
    }
    question = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    try:
        answer = client.post(_PATH, question | {"spec": {"resourceAttributes": attributes}})
    except (NotAllowedError, NotFoundError):
        return True
    status = answer.get("status")
    return isinstance(status, dict) and bool(status.get("allowed"))


def check(client: Client, requests: Iterable[Request]) -> None:
    """Raise NotAllowedError if our account may not send all these requests, or not renew the acting Lease."""
    renewal = Permission(
        verb="update", group="coordination.k8s.io", resource="leases", namespace=client.settings.namespace, name=ACTING
    )
    missing = [] if may(client, renewal) else [renewal]
    by_kind: dict[Permission, set[str]] = {}
    for needed in filter(None, map(_needed, requests)):
        by_kind.setdefault(replace(needed, namespace=""), set()).add(needed.namespace)
    missing += [each for permission, namespaces in by_kind.items() for each in _missing(client, permission, namespaces)]
    if missing:
        raise _refusal(missing)


def _missing(client: Client, permission: Permission, namespaces: set[str]) -> Iterator[Permission]:
    """Yield what is not allowed. Only if it is not allowed everywhere, each namespace is asked for."""
    if may(client, permission):
        return
    for namespace in sorted(namespaces):
        here = replace(permission, namespace=namespace)
        if not namespace or not may(client, here):
            yield here


def _needed(request: Request) -> Permission | None:
    """Return what a request to Kubernetes needs; None for requests to vCenter.

    A Machine that may not be marked is no obstacle (decision 0014).
    """
    match request:
        case PatchNode():
            return Permission(verb="patch", resource="nodes")
        case Evict(pod=pod):
            return Permission(verb="create", resource="pods", subresource="eviction", namespace=pod.namespace)
        case DeletePod(pod=pod):
            return Permission(verb="delete", resource="pods", namespace=pod.namespace, option="--force")
        case ScaleWorkload(workload=workload):
            kind, namespace = f"{workload.kind}s", workload.namespace
            return Permission(verb="patch", group="apps", resource=kind, namespace=namespace, option="--scale")
    return None


def _refusal(missing: list[Permission]) -> NotAllowedError:
    options = sorted({each.option for each in missing if each.option})
    command = " ".join(["vgpuctl rights kubernetes", *options])
    return NotAllowedError(
        f"This account may not {', '.join(map(str, missing))}. Nothing was changed.",
        hint=f"{command} prints the rights that vgpuctl needs, for kubectl apply -f -",
    )
