"""The RBAC objects that every cluster begins with, as far as the simulated one needs them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from vgpuctl.sim.kube.access.users import AUTHENTICATED, MASTERS
from vgpuctl.sim.kube.api.kinds import RBAC
from vgpuctl.sim.kube.objects import Object

_PATHS = (
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
)
_REVIEWS = {
    "authorization.k8s.io": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    "authentication.k8s.io": ["selfsubjectreviews"],
}
# kube-apiserver: bootstrappolicy. The roles `admin`, `edit` and `view` need a controller that aggregates them.
_RULES: dict[str, list[Object]] = {
    "cluster-admin": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
    "system:discovery": [{"nonResourceURLs": list(_PATHS), "verbs": ["get"]}],
    "system:basic-user": [
        {"apiGroups": [group], "resources": resources, "verbs": ["create"]} for group, resources in _REVIEWS.items()
    ],
}
_GROUPS = {"cluster-admin": MASTERS, "system:discovery": AUTHENTICATED, "system:basic-user": AUTHENTICATED}


def objects() -> Iterator[tuple[str, Object]]:
    """Yield each object with the plural of its kind."""
    for name, rules in _RULES.items():
        yield "clusterroles", _object("ClusterRole", name) | {"rules": rules}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        subjects = [{"apiGroup": RBAC, "kind": "Group", "name": _GROUPS[name]}]
        yield (
            "clusterrolebindings",
            _object("ClusterRoleBinding", name) | {"roleRef": reference, "subjects": subjects},
        )


def _object(kind: str, name: str) -> Object:
    # A uid of its own making: what a world draws by chance stays the same for one seed.
    uid = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}/{name}"))
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name, "uid": uid, "labels": labels}}
