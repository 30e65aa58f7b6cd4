"""What a real API server said about rights (measured, kube-apiserver 1.36): the same rows for it and for ours."""

from __future__ import annotations

from typing import Any, NamedTuple

Object = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
#: Requests of an account without rights, and the end of the refusal. NS: the test's namespace.
FORBIDDEN: tuple[tuple[str, str, str], ...] = (
    ("GET", "/api/v1/nodes/x", 'cannot get resource "nodes" in API group "" at the cluster scope'),
    ("GET", "/api/v1/nodes", 'cannot list resource "nodes" in API group "" at the cluster scope'),
    ("GET", "/api/v1/nodes?watch=1", 'cannot watch resource "nodes" in API group "" at the cluster scope'),
    (
        "GET",
        "/api/v1/nodes?fieldSelector=metadata.name=x",
        'cannot list resource "nodes" in API group "" at the cluster scope',
    ),
    ("PATCH", "/api/v1/nodes/x", 'cannot patch resource "nodes" in API group "" at the cluster scope'),
    ("DELETE", "/api/v1/nodes/x", 'cannot delete resource "nodes" in API group "" at the cluster scope'),
    ("DELETE", "/api/v1/nodes", 'cannot deletecollection resource "nodes" in API group "" at the cluster scope'),
    ("PUT", "/api/v1/nodes/x/status", 'cannot update resource "nodes/status" in API group "" at the cluster scope'),
    ("POST", "/api/v1/pods", 'cannot create resource "pods" in API group "" at the cluster scope'),
    ("GET", "/api/v1/namespaces/NS", 'cannot get resource "namespaces" in API group "" in the namespace "NS"'),
    (
        "POST",
        "/api/v1/namespaces/NS/configmaps",
        'cannot create resource "configmaps" in API group "" in the namespace "NS"',
    ),
    (
        "POST",
        "/api/v1/namespaces/NS/pods/x/eviction",
        'cannot create resource "pods/eviction" in API group "" in the namespace "NS"',
    ),
    (
        "GET",
        "/apis/apps/v1/namespaces/NS/deployments/x/scale",
        'cannot get resource "deployments/scale" in API group "apps" in the namespace "NS"',
    ),
    ("GET", "/apis/foo.bar/v1/things/x", 'cannot get resource "things" in API group "foo.bar" at the cluster scope'),
    (
        "GET",
        "/apis/foo.bar/v1/namespaces/NS/things",
        'cannot list resource "things" in API group "foo.bar" in the namespace "NS"',
    ),
    (
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        'cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope',
    ),
    ("GET", "/foo", 'cannot get path "/foo"'),
    ("GET", "/metrics", 'cannot get path "/metrics"'),
    ("POST", "/api", 'cannot post path "/api"'),
)
#: Requests of the same account that every account may send.
OPEN: tuple[str, ...] = ("/api", "/apis", "/version", "/openapi/v3", "/api/v1", "/apis/apps/v1")


class Question(NamedTuple):
    """A rule that an account has in its namespace, what it asks to do there, and the answer."""

    rule: Object
    asked: Object
    allowed: bool


def _rule(group: str, resource: str, verb: str, *names: str) -> Object:
    found: Object = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
    return found | ({"resourceNames": list(names)} if names else {})


def _asked(verb: str, resource: str, **more: str) -> Object:
    return {"verb": verb, "resource": resource, **more}


QUESTIONS: tuple[Question, ...] = (
    Question(_rule("", "pods", "get"), _asked("get", "pods"), True),
    Question(_rule("", "pods", "get"), _asked("list", "pods"), False),
    Question(_rule("", "pods", "get"), _asked("get", "pods", group="apps"), False),
    Question(_rule("", "pods", "get"), _asked("get", "pods", namespace="kube-public"), False),
    Question(_rule("", "pods", "get"), _asked("get", "pods", subresource="eviction"), False),
    Question(_rule("", "pods/eviction", "create"), _asked("create", "pods", subresource="eviction"), True),
    Question(_rule("", "pods/eviction", "create"), _asked("create", "pods"), False),
    Question(_rule("", "*/eviction", "create"), _asked("create", "pods", subresource="eviction"), True),
    Question(_rule("", "*/eviction", "create"), _asked("create", "pods", subresource="status"), False),
    Question(_rule("", "*/", "create"), _asked("create", "pods"), False),
    Question(_rule("", "pods/*", "create"), _asked("create", "pods", subresource="eviction"), False),
    Question(_rule("", "*", "get"), _asked("get", "pods", subresource="status"), True),
    Question(_rule("*", "deployments", "get"), _asked("get", "deployments", group="apps"), True),
    Question(_rule("apps", "deployments", "*"), _asked("patch", "deployments", group="apps"), True),
    Question(_rule("", "configmaps", "get", "ours"), _asked("get", "configmaps", name="ours"), True),
    Question(_rule("", "configmaps", "get", "ours"), _asked("get", "configmaps", name="theirs"), False),
    Question(_rule("", "configmaps", "list", "ours"), _asked("list", "configmaps"), False),
    Question(_rule("", "configmaps", "create", "ours"), _asked("create", "configmaps"), False),
)


#: A rule for paths, and which of these paths it covers.
PATHS_RULE: Object = {"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}
PATHS = {"/metrics": True, "/logs/x": True, "/logs": False, "/metrics/x": False, "/other": False}


class Invalid(NamedTuple):
    """A role or binding that the server refuses, and the fields and words of the causes."""

    plural: str
    body: Object
    causes: tuple[tuple[str, str], ...]


_REFERENCE: Object = {"apiGroup": GROUP, "kind": "Role", "name": "r"}
_CLUSTER: Object = {**_REFERENCE, "kind": "ClusterRole"}
_KINDS = '"Role", "ClusterRole"'


def _bound(**subject: str) -> Object:
    return {"roleRef": _CLUSTER, "subjects": [subject]}


INVALID: tuple[Invalid, ...] = (
    Invalid(
        "roles",
        {"rules": [{"apiGroups": [""], "resources": ["pods"]}]},
        (("rules[0].verbs", "Required value: verbs must contain at least one value"),),
    ),
    Invalid(
        "roles",
        {"rules": [{"verbs": ["get"], "resources": ["pods"]}]},
        (("rules[0].apiGroups", "Required value: resource rules must supply at least one api group"),),
    ),
    Invalid(
        "roles",
        {"rules": [{"verbs": ["get"], "apiGroups": [""]}]},
        (("rules[0].resources", "Required value: resource rules must supply at least one resource"),),
    ),
    Invalid(
        "roles",
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
        (
            (
                "rules[0].nonResourceURLs",
                'Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
            ),
        ),
    ),
    Invalid(
        "clusterroles",
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""], "resources": ["pods"]}]},
        (
            (
                "rules[0].nonResourceURLs",
                'Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs',
            ),
        ),
    ),
    Invalid(
        "roles", {"metadata": {"name": "a/b"}}, (("metadata.name", "Invalid value: \"a/b\": may not contain '/'"),)
    ),
    Invalid(
        "rolebindings",
        {},
        (
            ("roleRef.kind", f'Unsupported value: "": supported values: {_KINDS}'),
            ("roleRef.name", "Required value"),
        ),
    ),
    Invalid(
        "rolebindings",
        {"roleRef": _REFERENCE | {"kind": "Rule"}},
        (("roleRef.kind", f'Unsupported value: "Rule": supported values: {_KINDS}'),),
    ),
    Invalid(
        "rolebindings",
        {"roleRef": _REFERENCE | {"apiGroup": "x"}},
        (("roleRef.apiGroup", f'Unsupported value: "x": supported values: "{GROUP}"'),),
    ),
    Invalid(
        "clusterrolebindings",
        {"roleRef": _REFERENCE},
        (("roleRef.kind", 'Unsupported value: "Role": supported values: "ClusterRole"'),),
    ),
    Invalid(
        "clusterrolebindings", _bound(kind="ServiceAccount", name="x"), (("subjects[0].namespace", "Required value"),)
    ),
    Invalid(
        "rolebindings",
        _bound(kind="Robot", name="x"),
        (
            (
                "subjects[0].kind",
                'Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
            ),
        ),
    ),
    Invalid("rolebindings", _bound(kind="User"), (("subjects[0].name", "Required value"),)),
    Invalid(
        "rolebindings",
        _bound(kind="User", name="x", apiGroup="x"),
        (("subjects[0].apiGroup", f'Unsupported value: "x": supported values: "{GROUP}"'),),
    ),
    Invalid(
        "rolebindings",
        _bound(kind="ServiceAccount", name="x", namespace="y", apiGroup="x"),
        (("subjects[0].apiGroup", 'Unsupported value: "x": supported values: ""'),),
    ),
)

#: What its account may do that writes roles: of pods, only read.
MAKERS_RULES: tuple[Object, ...] = (
    {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["create", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
)
#: The rules that it wants to grant, and the rights that it lacks for that, in the server's words.
ESCALATIONS: tuple[tuple[tuple[Object, ...], str], ...] = (
    (
        (
            {"apiGroups": ["", "apps"], "resources": ["nodes", "pods"], "verbs": ["get", "patch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"], "resourceNames": ["x"]},
        ),
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "patch"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["patch"]}\n'
        '{APIGroups:["apps"], Resources:["nodes"], Verbs:["get" "patch"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "patch"]}',
    ),
    (
        ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},),
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
    ),
    (
        ({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["x"]},),
        '{APIGroups:[""], Resources:["configmaps"], ResourceNames:["x"], Verbs:["get"]}',
    ),
)
