"""Users with rights: what both API servers allow, refuse and say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import pytest

from tests.support.peers.clusters import MERGE, Cluster, Object
from tests.support.rbac_cases import (
    ESCALATIONS,
    FORBIDDEN,
    GROUP,
    INVALID,
    MAKERS_RULES,
    OPEN,
    PATHS,
    PATHS_RULE,
    QUESTIONS,
    RBAC,
    Invalid,
    Question,
)

NAME = "robot"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclasses.dataclass(frozen=True)
class Robot:
    """A ServiceAccount of the test's namespace. `admin`: the cluster as an administrator sees it; `own`: as it does."""

    admin: Cluster
    own: Cluster

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.admin.namespace}:{NAME}"

    def grant(self, *rules: Object) -> None:
        """Bind a role with these rules in the namespace."""
        self.admin.create(self.admin.path("roles", group=GROUP), {"metadata": {"name": NAME}, "rules": list(rules)})
        self.admin.create(self.admin.path("rolebindings", group=GROUP), self.binding(NAME, "Role"))

    def binding(self, role: str, kind: str) -> Object:
        subject = {"kind": "ServiceAccount", "name": NAME, "namespace": self.admin.namespace}
        reference = {"apiGroup": GROUP, "kind": kind, "name": role}
        return {"metadata": {"name": NAME}, "roleRef": reference, "subjects": [subject]}

    def may(self, **asked: str) -> bool:
        attributes = {"namespace": self.admin.namespace, **asked}
        return bool(self.own.create(REVIEW, {"spec": {"resourceAttributes": attributes}})["status"]["allowed"])


@pytest.fixture
def robot(cluster: Cluster) -> Robot:
    path = cluster.path("serviceaccounts")
    cluster.create(path, {"metadata": {"name": NAME}})
    token = cluster.create(f"{path}/{NAME}/token", {"spec": {}})["status"]["token"]
    return Robot(cluster, dataclasses.replace(cluster, token=token))


def test_every_account_may_ask_for_its_own_name(robot: Robot) -> None:
    """Holds and orders bear it. `whoami` sends no `spec`, and reads no other field."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = robot.own.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert answer["status"]["userInfo"]["username"] == robot.user


def test_what_an_account_has_no_right_to_is_refused_before_anything_else(robot: Robot) -> None:
    namespace = robot.admin.namespace
    for method, path, words in FORBIDDEN:
        body: Object | None = {} if method in ("POST", "PUT", "PATCH") else None
        answer = robot.own.http(method, path.replace("NS", namespace), body, MERGE if method == "PATCH" else "")
        status = answer.refused(403, "Forbidden")
        told = f'forbidden: User "{robot.user}" {words.replace("NS", namespace)}'
        assert status["message"].endswith(told), (method, path)
        assert status["message"].removesuffix(told) == named(status["details"]), status


def named(details: Object) -> str:
    """The beginning of a refusal, as its details have it."""
    if not details:
        return ""
    kind = ".".join(filter(None, (details["kind"], details.get("group"))))
    return f'{kind} "{details["name"]}" is ' if "name" in details else f"{kind} is "


def test_every_account_may_discover(robot: Robot) -> None:
    assert {path: robot.own.http("GET", path).code for path in OPEN} == dict.fromkeys(OPEN, 200)


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: f"{case.rule} {case.asked}")
def test_a_rule_covers_what_it_names(robot: Robot, case: Question) -> None:
    marker = {"apiGroups": [""], "resources": ["markers"], "verbs": ["get"]}
    robot.grant(case.rule, marker)
    robot.admin.until(lambda: robot.may(verb="get", resource="markers"), what="the server has heard of the role")
    assert robot.may(**case.asked) is case.allowed


def test_a_list_of_one_name_needs_the_right_to_that_name_alone(robot: Robot) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"], "resourceNames": ["ours"]}
    robot.grant(rule)
    path = robot.admin.path("configmaps")
    one = f"{path}?fieldSelector=metadata.name="
    robot.admin.until(lambda: robot.own.http("GET", f"{one}ours").code == 200, what="the server has heard of the role")
    robot.own.http("GET", f"{one}theirs").refused(403, "Forbidden")
    robot.own.http("GET", path).refused(403, "Forbidden")


def test_a_role_of_the_whole_cluster_holds_in_the_namespace_of_its_binding(robot: Robot, role: str) -> None:
    robot.admin.create(robot.admin.path("rolebindings", group=GROUP), robot.binding(role, "ClusterRole"))
    robot.admin.until(lambda: robot.may(verb="get", resource="pods"), what="the server has heard of the binding")
    assert not robot.may(verb="get", resource="pods", namespace="default")
    assert not robot.may(verb="get", resource="pods", namespace="")


@pytest.fixture
def role(cluster: Cluster) -> Iterator[str]:
    """A ClusterRole that reads pods."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    cluster.create(f"{RBAC}/clusterroles", {"metadata": {"name": cluster.namespace}, "rules": rules})
    yield cluster.namespace
    cluster.http("DELETE", f"{RBAC}/clusterroles/{cluster.namespace}").ok()


def test_a_binding_of_a_role_that_is_missing_is_told(robot: Robot) -> None:
    robot.admin.create(robot.admin.path("rolebindings", group=GROUP), robot.binding("nowhere", "Role"))
    why = f'RBAC: role.{GROUP} "nowhere" not found'
    path = robot.admin.path("pods", "x")
    robot.admin.until(lambda: robot.own.http("GET", path).body["message"].endswith(why), what="it says so")


def test_a_path_may_be_allowed(robot: Robot) -> None:
    name = robot.admin.namespace
    robot.admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [PATHS_RULE]})
    binding = robot.binding(name, "ClusterRole") | {"metadata": {"name": name}}
    robot.admin.create(f"{RBAC}/clusterrolebindings", binding)

    def may(path: str) -> bool:
        spec = {"nonResourceAttributes": {"verb": "get", "path": path}}
        return bool(robot.own.create(REVIEW, {"spec": spec})["status"]["allowed"])

    try:
        robot.admin.until(lambda: may("/metrics"), what="the server has heard of the binding")
        assert {path: may(path) for path in PATHS} == PATHS
    finally:
        for plural in ("clusterroles", "clusterrolebindings"):
            robot.admin.http("DELETE", f"{RBAC}/{plural}/{name}").ok()


@pytest.mark.parametrize("case", INVALID, ids=lambda case: f"{case.plural} {case.body}")
def test_a_role_or_binding_that_makes_no_sense_is_refused(cluster: Cluster, case: Invalid) -> None:
    path = f"{RBAC}/{case.plural}" if case.plural.startswith("cluster") else cluster.path(case.plural, group=GROUP)
    status = cluster.http("POST", path, {"metadata": {"name": "x"}, **case.body}).refused(422, "Invalid")
    assert tuple((cause["field"], cause["message"]) for cause in status["details"]["causes"]) == case.causes


def test_a_binding_keeps_its_role(robot: Robot) -> None:
    robot.grant({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})
    path = robot.admin.path("rolebindings", NAME, GROUP)
    status = robot.admin.http("PATCH", path, {"roleRef": {"name": "other"}}, MERGE).refused(422, "Invalid")
    shown = f'{{"APIGroup":"{GROUP}","Kind":"Role","Name":"other"}}'
    assert status["details"]["causes"][0]["message"] == f"Invalid value: {shown}: cannot change roleRef"


@pytest.mark.parametrize("case", ESCALATIONS, ids=lambda case: case[1])
def test_an_account_grants_no_right_that_it_lacks(robot: Robot, case: tuple[tuple[Object, ...], str]) -> None:
    rules, missing = case
    robot.grant(*MAKERS_RULES)
    robot.admin.until(lambda: robot.may(verb="list", resource="pods"), what="the server has heard of the role")
    path = robot.admin.path("roles", group=GROUP)
    status = robot.own.http("POST", path, {"metadata": {"name": "more"}, "rules": rules}).refused(403, "Forbidden")
    groups = f'"system:serviceaccounts" "system:serviceaccounts:{robot.admin.namespace}" "system:authenticated"'
    assert status["message"] == (
        f'roles.{GROUP} "more" is forbidden: user "{robot.user}" (groups=[{groups}]) '
        f"is attempting to grant RBAC permissions not currently held:\n{missing}"
    )
    held = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"], "resourceNames": ["x"]}
    robot.own.create(path, {"metadata": {"name": "held"}, "rules": [held]})
    patched = robot.own.http("PATCH", f"{path}/held", {"rules": rules}, MERGE)
    assert patched.refused(403, "Forbidden")["message"].endswith(missing)
    missing_role = robot.own.http("POST", robot.admin.path("rolebindings", group=GROUP), robot.binding("gone", "Role"))
    assert missing_role.refused(404, "NotFound")["message"] == f'rolebindings.{GROUP} "gone" not found'


def test_a_token_is_given_for_ten_minutes_at_least(robot: Robot) -> None:
    path = robot.admin.path("serviceaccounts", NAME, part="token")

    def refused(body: Object) -> str:
        status = robot.admin.http("POST", path, body).refused(422, "Invalid")
        return str(status["message"])

    assert refused({"spec": {"expirationSeconds": 60}}) == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 60: '
        "may not specify a duration less than 10 minutes"
    )
    assert refused({"metadata": {"name": "other"}, "spec": {}}) == (
        f'TokenRequest.authentication.k8s.io "{NAME}" is invalid: metadata.name: Invalid value: "other": '
        "must match the service account name if specified"
    )
    robot.admin.http("POST", path.replace(NAME, "nobody"), {"spec": {}}).refused(404, "NotFound")
    robot.admin.http("GET", path).refused(405, "MethodNotAllowed")
    foreign = robot.admin.create(path, {"spec": {"audiences": ["me"]}})["status"]["token"]
    dataclasses.replace(robot.admin, token=foreign).http("GET", "/api").refused(401, "Unauthorized")


def test_a_token_ends_with_its_account(robot: Robot) -> None:
    account = robot.admin.path("serviceaccounts", NAME)
    assert robot.admin.http("DELETE", account).ok()["kind"] == "ServiceAccount"
    robot.admin.create(robot.admin.path("serviceaccounts"), {"metadata": {"name": NAME}})
    # A real server keeps the answer about a token for ten seconds.
    robot.admin.until(lambda: robot.own.http("GET", "/api").code == 401, what="the token is no login any more")


def test_an_administrator_acts_as_another_user_and_no_account_does(robot: Robot) -> None:
    as_ann = {"Impersonate-User": "ann"}
    refused = robot.admin.http("GET", "/api/v1/nodes", **as_ann).refused(403, "Forbidden")
    assert 'User "ann" cannot list resource "nodes"' in refused["message"]
    for name, manner in (("ann", "user-info"), (robot.user, "serviceaccount")):
        answer = robot.own.http("GET", "/api/v1/nodes", **{"Impersonate-User": name})
        assert f'cannot impersonate-on:{manner}:list resource "nodes"' in answer.refused(403, "Forbidden")["message"]
    robot.admin.http("GET", "/api/v1/nodes", **{"Impersonate-Group": "ops"}).refused(400, "BadRequest")


def test_kubectl_makes_an_account_with_rights_and_says_what_it_may(cluster: Cluster) -> None:
    run = kubectl(cluster)
    run("create", "serviceaccount", NAME)
    run("create", "role", "readers", "--verb=get,list", "--resource=pods,deployments.apps", "--resource=pods/eviction")
    run("create", "rolebinding", "readers", "--role=readers", f"--serviceaccount={cluster.namespace}:{NAME}")
    run("create", "rolebinding", "people", "--role=readers", "--user=ann", "--group=ops")
    token = run("create", "token", NAME, "--duration=20m").strip()
    own = dataclasses.replace(cluster, token=token)
    path = cluster.path("pods")
    cluster.until(lambda: own.http("GET", path).code == 200, what="the account may read")
    account = f"--as=system:serviceaccount:{cluster.namespace}:{NAME}"
    assert run("auth", "can-i", "list", "pods", account) == "yes\n"
    assert run("auth", "can-i", "get", "pods/eviction", "--as=ann") == "yes\n"
    assert run("auth", "can-i", "delete", "pods", "--as=eve", "--as-group=ops", code=1) == "no\n"
    listed = run("auth", "can-i", "--list", account)
    assert "selfsubjectreviews.authentication.k8s.io" in listed
    assert [row.split()[-2:] for row in listed.splitlines() if row.startswith("pods ")] == [["[get", "list]"]]
    wide = run("get", "rolebindings", "-o", "wide", "--no-headers")
    rows = {row.split()[0]: row.split() for row in wide.splitlines()}
    assert rows["people"][1::2][:1] + rows["people"][3:] == ["Role/readers", "ann", "ops"]
    assert rows["readers"][-1] == f"{cluster.namespace}/{NAME}"
    assert run("get", "roles", "--no-headers").split()[0] == "readers"
    whoami = run("auth", "whoami", account, "-o", "jsonpath={.status.userInfo.username}")
    assert whoami == f"system:serviceaccount:{cluster.namespace}:{NAME}"


def kubectl(cluster: Cluster) -> Callable[..., str]:
    def run(*words: str, code: int = 0) -> str:
        done = cluster.kubectl("-n", cluster.namespace, *words)
        assert done.returncode == code, (words, done.stderr)
        return done.stdout

    return run
