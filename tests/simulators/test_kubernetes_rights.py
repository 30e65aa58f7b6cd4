"""Users with rights at the simulated Kubernetes. The rows are those that the contract asks a real API server."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.support.clients import kubectl
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
)
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.kube.access.users import ADMIN, AUTHENTICATED, User, service_account
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.patches import MERGE
from vgpuctl.sim.kube.api.request import Reply, Request
from vgpuctl.sim.world import World

Object = dict[str, Any]
NS, NAME = "default", "robot"
ROBOT = service_account(NS, NAME)
ACCOUNTS = f"/api/v1/namespaces/{NS}/serviceaccounts"
OURS = f"{RBAC}/namespaces/{NS}"
REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.fixture
def world() -> World:
    return World(default_inventory(1, 1))


def asked(world: World, user: User, method: str, path: str, body: Object | None = None) -> Object:
    """Return the body of the answer."""
    path, _, query = path.partition("?")
    reply = world.api.answer(
        Request(
            method=method,
            path=path,
            query=dict(parse_qsl(query)),
            body=json.dumps(body or {}).encode(),
            content_type=MERGE if method == "PATCH" else "application/json",
            user=user,
        )
    )
    assert isinstance(reply, Reply)
    return reply.body


def refused(world: World, user: User, method: str, path: str, body: Object | None = None) -> ApiError:
    with pytest.raises(ApiError) as caught:
        asked(world, user, method, path, body)
    return caught.value


def grant(world: World, *rules: Object) -> None:
    kubectl(world.api, "POST", f"{OURS}/roles", {"metadata": {"name": NAME}, "rules": list(rules)})
    kubectl(world.api, "POST", f"{OURS}/rolebindings", binding(NAME))


def binding(role: str, of: str = "Role", **subject: str) -> Object:
    subject = subject or {"kind": "ServiceAccount", "name": NAME, "namespace": NS}
    return {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": GROUP, "kind": of, "name": role},
        "subjects": [subject],
    }


def may(world: World, user: User = ROBOT, **attributes: str) -> bool:
    spec = {"resourceAttributes": {"namespace": NS, **attributes}}
    return bool(asked(world, user, "POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec})["status"]["allowed"])


@pytest.mark.parametrize(("method", "path", "words"), FORBIDDEN)
def test_what_a_user_has_no_right_to_is_refused(world: World, method: str, path: str, words: str) -> None:
    error = refused(world, ROBOT, method, path.replace("NS", NS))
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.message.endswith(f'forbidden: User "{ROBOT.name}" {words.replace("NS", NS)}')


@pytest.mark.parametrize("path", OPEN)
def test_every_user_may_discover(world: World, path: str) -> None:
    assert asked(world, ROBOT, "GET", path)


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: f"{case.rule} {case.asked}")
def test_a_rule_covers_what_it_names(world: World, case: Any) -> None:
    grant(world, case.rule)
    assert may(world, **case.asked) is case.allowed
    assert not may(world, service_account(NS, "other"), **case.asked), "it is bound to one account"


def test_a_list_of_one_name_needs_the_right_to_that_name_alone(world: World) -> None:
    grant(world, {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"], "resourceNames": ["ours"]})
    path = f"/api/v1/namespaces/{NS}/configmaps"
    assert asked(world, ROBOT, "GET", f"{path}?fieldSelector=metadata.name=ours")["items"] == []
    assert refused(world, ROBOT, "GET", f"{path}?fieldSelector=metadata.name=theirs").code == 403
    assert refused(world, ROBOT, "GET", path).code == 403


@pytest.mark.parametrize("path", PATHS)
def test_a_rule_covers_a_path_or_all_below_it(world: World, path: str) -> None:
    kubectl(world.api, "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "paths"}, "rules": [PATHS_RULE]})
    kubectl(world.api, "POST", f"{RBAC}/clusterrolebindings", binding("paths", "ClusterRole"))
    review = {"spec": {"nonResourceAttributes": {"verb": "get", "path": path}}}
    status = asked(world, ROBOT, "POST", f"{REVIEWS}/selfsubjectaccessreviews", review)["status"]
    assert status["allowed"] is PATHS[path]


def test_a_change_of_a_role_counts_at_once(world: World) -> None:
    grant(world, {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]})
    kubectl(world.api, "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "seers"}, "rules": seers("get")})
    kubectl(world.api, "POST", f"{RBAC}/clusterrolebindings", binding("seers", "ClusterRole"))
    assert asked(world, ROBOT, "GET", "/api/v1/nodes/worker-1")["kind"] == "Node"
    kubectl(world.api, "PATCH", f"{RBAC}/clusterroles/seers", {"rules": seers("list")})
    assert refused(world, ROBOT, "GET", "/api/v1/nodes/worker-1").code == 403
    assert asked(world, ROBOT, "GET", "/api/v1/nodes")["kind"] == "NodeList"


def seers(verb: str) -> list[Object]:
    return [{"apiGroups": [""], "resources": ["nodes"], "verbs": [verb]}]


def test_users_and_groups_are_bound_as_accounts_are(world: World) -> None:
    kubectl(world.api, "POST", f"{RBAC}/clusterroles", {"metadata": {"name": "seers"}, "rules": seers("get")})
    kubectl(world.api, "POST", f"{RBAC}/clusterrolebindings", binding("seers", "ClusterRole", kind="User", name="ann"))
    group = binding("seers", "ClusterRole", kind="Group", name="ops") | {"metadata": {"name": "group"}}
    kubectl(world.api, "POST", f"{RBAC}/clusterrolebindings", group)
    users = [
        User(name, (group, AUTHENTICATED)) for name, group in (("ann", ""), ("eve", "ops"), ("eve", ""), ("ops", ""))
    ]
    assert [may(world, user, verb="get", resource="nodes") for user in users] == [True, True, False, False]


def test_a_binding_of_a_role_that_is_missing_is_told(world: World) -> None:
    kubectl(world.api, "POST", f"{OURS}/rolebindings", binding("nowhere"))
    error = refused(world, ROBOT, "GET", f"/api/v1/namespaces/{NS}/pods")
    assert error.message.endswith(f'in the namespace "default": RBAC: role.{GROUP} "nowhere" not found')


@pytest.mark.parametrize("case", INVALID, ids=lambda case: f"{case.plural} {case.body}")
def test_a_role_or_binding_that_makes_no_sense_is_refused(world: World, case: Invalid) -> None:
    path = f"{RBAC}/{case.plural}" if case.plural.startswith("cluster") else f"{OURS}/{case.plural}"
    error = refused(world, ADMIN, "POST", path, {"metadata": {"name": "x"}, **case.body})
    assert error.code == 422
    assert tuple((cause["field"], cause["message"]) for cause in (error.details or {})["causes"]) == case.causes


@pytest.mark.parametrize(("rules", "missing"), ESCALATIONS)
def test_nobody_grants_what_they_lack(world: World, rules: tuple[Object, ...], missing: str) -> None:
    grant(world, *MAKERS_RULES)
    error = refused(world, ROBOT, "POST", f"{OURS}/roles", {"metadata": {"name": "more"}, "rules": list(rules)})
    assert (error.code, error.message.partition("not currently held:\n")[2]) == (403, missing)
    kubectl(world.api, "POST", f"{OURS}/roles", {"metadata": {"name": "more"}, "rules": list(rules)})
    bound = refused(world, ROBOT, "POST", f"{OURS}/rolebindings", binding("more"))
    assert bound.message.endswith(missing)


def test_who_may_escalate_or_bind_grants_more(world: World) -> None:
    exempt = {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["escalate", "bind"]}
    grant(world, *MAKERS_RULES, exempt)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    asked(world, ROBOT, "POST", f"{OURS}/roles", {"metadata": {"name": "more"}, "rules": rules})
    asked(world, ROBOT, "POST", f"{OURS}/rolebindings", binding("more"))
    assert may(world, verb="delete", resource="pods")


def test_a_token_is_its_accounts_login_until_either_ends(world: World) -> None:
    kubectl(world.api, "POST", ACCOUNTS, {"metadata": {"name": NAME}})
    given = kubectl(world.api, "POST", f"{ACCOUNTS}/{NAME}/token", {"spec": {"expirationSeconds": 600}})["status"]
    user = world.api.tokens.user_of(given["token"])
    assert user is not None
    assert (user.name, user.groups) == (ROBOT.name, ROBOT.groups)
    world.wait(599)
    assert world.api.tokens.user_of(given["token"]) == user
    world.wait(1)
    assert world.api.tokens.user_of(given["token"]) is None
    later = kubectl(world.api, "POST", f"{ACCOUNTS}/{NAME}/token")["status"]["token"]
    kubectl(world.api, "DELETE", f"{ACCOUNTS}/{NAME}")
    kubectl(world.api, "POST", ACCOUNTS, {"metadata": {"name": NAME}})
    assert world.api.tokens.user_of(later) is None, "another account with the same name"


def test_the_administrator_may_do_everything_whatever_the_roles_say(world: World) -> None:
    for name in ("cluster-admin", "system:discovery"):
        kubectl(world.api, "DELETE", f"{RBAC}/clusterroles/{name}")
    assert asked(world, ADMIN, "GET", "/api")["kind"] == "APIVersions"
    assert refused(world, ROBOT, "GET", "/api").code == 403
