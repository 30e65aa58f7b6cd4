"""Tokens of ServiceAccounts, as `kubectl create token` asks for them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.access.users import User, service_account
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.api.errors import ApiError, bad_request
from vgpuctl.sim.kube.objects import Object, at, name_of, namespace_of, timestamp, uid_of
from vgpuctl.sim.kube.store import Store

AUDIENCE = "https://kubernetes.default.svc.cluster.local"
#: Kubernetes: a token lives for an hour unless its request says otherwise, and for ten minutes at least.
_LIFE_S, _LEAST_S, _MOST_S = 3600, 600, 1 << 32


@dataclass(frozen=True, slots=True)
class _Token:
    namespace: str
    name: str
    uid: str
    expires: datetime


class Tokens:
    """The tokens that were given out. A token is good until it expires or its ServiceAccount is deleted."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock, self._store = clock, store
        self._given: dict[str, _Token] = {}

    def give(self, account: Object, request: Any) -> Object:
        """Return the answer to a TokenRequest."""
        spec = (request.get("spec") or {}) if isinstance(request, dict) else None
        if not isinstance(spec, dict):
            raise bad_request("json: cannot unmarshal into Go struct field TokenRequest.spec")
        named = at(request, "metadata.name") or name_of(account)
        if named != name_of(account):
            why = f'Invalid value: "{named}": must match the service account name if specified'
            raise _invalid(name_of(account), "metadata.name", why)
        seconds, audiences = _life_s(spec), _audiences(spec)
        now = self._clock.utc()
        self._given = {text: token for text, token in self._given.items() if token.expires > now}
        text = secrets.token_urlsafe(32)
        expires = now + timedelta(seconds=seconds)
        # Kubernetes: a token for other audiences is no login to the API server.
        if AUDIENCE in audiences:
            self._given[text] = _Token(namespace_of(account), name_of(account), uid_of(account), expires)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": name_of(account),
                "namespace": namespace_of(account),
                "creationTimestamp": timestamp(now),
            },
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": text, "expirationTimestamp": timestamp(expires)},
        }

    def user_of(self, text: str) -> User | None:
        """Return the ServiceAccount that the token belongs to."""
        token = self._given.get(text)
        if token is None or token.expires <= self._clock.utc():
            return None
        account = self._store.get("serviceaccounts", token.namespace, token.name)
        # Kubernetes: a token names the account's UID, so it is no login of a later account with that name.
        if account is None or uid_of(account) != token.uid:
            return None
        return service_account(token.namespace, token.name, token.uid)


def _life_s(spec: Object) -> int:
    seconds: Any = spec.get("expirationSeconds", _LIFE_S)
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise bad_request("json: cannot unmarshal into Go struct field TokenRequestSpec.spec.expirationSeconds")
    if seconds < _LEAST_S:
        raise _bad_life(seconds, "less than 10 minutes")
    if seconds > _MOST_S:
        raise _bad_life(seconds, "larger than 2^32 seconds")
    return seconds


def _bad_life(seconds: int, why: str) -> ApiError:
    return _invalid("", "spec.expirationSeconds", f"Invalid value: {seconds}: may not specify a duration {why}")


def _invalid(name: str, field: str, message: str) -> ApiError:
    details: Object = ({"name": name} if name else {}) | {"group": "authentication.k8s.io", "kind": "TokenRequest"}
    details["causes"] = [{"reason": "FieldValueInvalid", "message": message, "field": field}]
    text = f'TokenRequest.authentication.k8s.io "{name}" is invalid: {field}: {message}'
    return errors.ApiError(422, "Invalid", text, details)


def _audiences(spec: Object) -> list[str]:
    if at(spec, "boundObjectRef"):
        raise bad_request("this simulator gives no tokens that are bound to an object")
    audiences: Any = spec.get("audiences") or [AUDIENCE]
    if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
        raise bad_request("json: cannot unmarshal into Go struct field TokenRequestSpec.spec.audiences")
    return audiences
