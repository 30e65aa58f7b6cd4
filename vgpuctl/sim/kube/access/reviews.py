"""Reviews: what a user may do, and who the caller is. They are answered and not stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from vgpuctl.sim.kube.access.attributes import Attributes
from vgpuctl.sim.kube.access.rbac import Authorizer, Decision
from vgpuctl.sim.kube.access.users import User
from vgpuctl.sim.kube.api import errors, protobuf
from vgpuctl.sim.kube.api.request import Reply, Request
from vgpuctl.sim.kube.objects import Object

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io/v1", "authentication.k8s.io/v1"
_RESOURCE, _PATH = "resourceAttributes", "nonResourceAttributes"
_FIELDS = ("verb", "group", "resource", "subresource", "namespace", "name")


class Reviews:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._answers: dict[str, tuple[str, Callable[[User, Object], Object]]] = {
            f"/apis/{api}/{kind.lower()}s": (kind, answer)
            for api, kind, answer in (
                (_AUTHORIZATION, "SelfSubjectAccessReview", self._access),
                (_AUTHORIZATION, "SubjectAccessReview", self._access_of_another),
                (_AUTHORIZATION, "SelfSubjectRulesReview", self._rules),
                (_AUTHENTICATION, "SelfSubjectReview", _whoami),
            )
        }

    def answer(self, request: Request) -> Reply | None:
        """Return None if the path is not one of a review."""
        path = request.path.rstrip("/")
        if path not in self._answers:
            return None
        if request.method != "POST":
            raise errors.method_not_allowed()
        kind, answer = self._answers[path]
        spec = _spec(request, kind)
        names: Object = {"kind": kind, "apiVersion": "/".join(path.split("/")[2:4]), "metadata": {}}
        return Reply(201, names | ({"spec": spec} if spec else {}) | {"status": answer(request.user, spec)})

    def _access(self, user: User, spec: Object) -> Object:
        return _status(self._authorizer.decide(user, _asked(spec)))

    def _access_of_another(self, _: User, spec: Object) -> Object:
        user, groups = spec.get("user") or "", spec.get("groups") or []
        if not isinstance(user, str) or not isinstance(groups, list):
            raise _unreadable("SubjectAccessReview")
        if not user and not groups:
            raise _invalid("spec.user", '""', "at least one of user or group must be specified")
        return _status(self._authorizer.decide(User(user, tuple(groups)), _asked(spec)))

    def _rules(self, user: User, spec: Object) -> Object:
        namespace = spec.get("namespace") or ""
        if not namespace:
            raise errors.bad_request("no namespace on request")
        rules = self._authorizer.rules_for(user, namespace)
        return {
            "resourceRules": [rule for rule in rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }


def _whoami(user: User, _: Object) -> Object:
    return {"userInfo": user.document()}


def _status(decision: Decision) -> Object:
    return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _asked(spec: Object) -> Attributes:
    given: Any = spec.get(_RESOURCE) or spec.get(_PATH)
    if not given:
        raise _invalid(f"spec.{_RESOURCE}", "null", f"exactly one of {_PATH} or {_RESOURCE} must be specified")
    if spec.get(_RESOURCE) and spec.get(_PATH):
        shown = json.dumps({key.capitalize(): value for key, value in spec[_PATH].items()}, separators=(",", ":"))
        raise _invalid(f"spec.{_PATH}", shown, f"cannot be specified in combination with {_RESOURCE}")
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise _unreadable("SelfSubjectAccessReview")
    if spec.get(_PATH):
        return Attributes(verb=given.get("verb", ""), path=given.get("path", ""))
    return Attributes(**{"verb": "", **{field: given[field] for field in _FIELDS if field in given}})


def _spec(request: Request, kind: str) -> Object:
    review = protobuf.document_of(request)
    spec = (review.get("spec") or {}) if isinstance(review, dict) else None
    if not isinstance(spec, dict):
        raise _unreadable(kind)
    return spec


def _invalid(field: str, value: str, why: str) -> errors.ApiError:
    message = f"Invalid value: {value}: {why}"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": field}]
    # Measured: kube-apiserver 1.36 names no kind here.
    details = {"group": "authorization.k8s.io", "causes": causes}
    return errors.ApiError(422, "Invalid", f'.authorization.k8s.io "" is invalid: {field}: {message}', details)


def _unreadable(kind: str) -> errors.ApiError:
    return errors.bad_request(f"json: cannot unmarshal into Go struct field {kind}.spec")
