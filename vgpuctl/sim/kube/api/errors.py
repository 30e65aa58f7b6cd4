"""The API server's errors, with its own messages."""

from __future__ import annotations

import json
from typing import Any

from vgpuctl.sim.kube.access.attributes import Attributes
from vgpuctl.sim.kube.api.kinds import Kind

Details = dict[str, Any]


class ApiError(Exception):
    """A refusal that is sent as a Status object."""

    def __init__(self, code: int, reason: str, message: str, details: Details | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    @property
    def retry_after_s(self) -> int:
        return int((self.details or {}).get("retryAfterSeconds", 0))

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return body | {"code": self.code}


def _named(kind: Kind, name: str) -> Details:
    return {"name": name} | ({"group": kind.group} if kind.group else {}) | {"kind": kind.plural}


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def not_allowed(user: str, asked: Attributes, reason: str = "") -> ApiError:
    """Return the error for what the user has no right to. `reason`: why bindings of the user give none."""
    why = f": {reason}" if reason else ""
    # Measured: the words of kube-apiserver 1.36.
    if asked.path:
        message = f'forbidden: User "{user}" cannot {asked.verb} path "{asked.path}"{why}'
        return ApiError(403, "Forbidden", message, {})
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    what = f'resource "{asked.whole_resource}" in API group "{asked.group}" {where}{why}'
    kind = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    named = f'{kind} "{asked.name}"' if asked.name else kind
    details = ({"name": asked.name} if asked.name else {}) | ({"group": asked.group} if asked.group else {})
    message = f'{named} is forbidden: User "{user}" cannot {asked.verb} {what}'
    return ApiError(403, "Forbidden", message, details | {"kind": asked.resource})


def forbidden(kind: Kind, name: str, why: str) -> ApiError:
    return ApiError(403, "Forbidden", f'{kind.qualified} "{name}" is forbidden: {why}', _named(kind, name))


def not_found(kind: Kind, name: str) -> ApiError:
    # Measured: kube-apiserver 1.36.
    return ApiError(404, "NotFound", f'{kind.qualified} "{name}" not found', _named(kind, name))


def no_such_resource() -> ApiError:
    # Kubernetes: details are empty here, because no object was named.
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> ApiError:
    # Measured: kube-apiserver 1.36, to a POST to an object that has a name.
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable() -> ApiError:
    return ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json")


def unsupported_media_type() -> ApiError:
    # Measured: kube-apiserver 1.36, to a kind of patch that it does not know.
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def already_exists(kind: Kind, name: str) -> ApiError:
    # Measured: kube-apiserver 1.36. So only one of two clients creates a Lease.
    return ApiError(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', _named(kind, name))


def conflict(kind: Kind, name: str, why: str = "") -> ApiError:
    # Measured: kube-apiserver 1.36 refuses a stale resourceVersion so. Clients look and try again.
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _named(kind, name))


def precondition(kind: Kind, name: str, field: str, requested: str, recorded: str) -> ApiError:
    # Measured: kube-apiserver 1.36, to an eviction with another UID.
    why = f"the {field} in the precondition ({requested}) does not match the {field} in record ({recorded})."
    message = f'Operation cannot be fulfilled on {kind.kind} "{name}": {why} The object might have been '
    message += "deleted and then recreated" if field == "UID" else "modified"
    return ApiError(409, "Conflict", message, {"name": name, "kind": kind.kind})


def invalid(kind: Kind, name: str, causes: list[tuple[str, str, str]]) -> ApiError:
    """Return an error for invalid fields. `causes`: field, reason and message of each."""
    texts = [f"{field}: {message}" for field, _, message in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Details = {"name": name} if name else {}
    details |= {"group": kind.group} if kind.group else {}
    details["kind"] = kind.kind
    # Measured: kube-apiserver 1.36 names the field of each cause, and clients go by it.
    details["causes"] = [{"reason": reason, "message": message, "field": field} for field, reason, message in causes]
    return ApiError(422, "Invalid", f'{kind.kind} "{name}" is invalid: {listed}', details)


def version_missing(kind: Kind, name: str) -> ApiError:
    # Measured: kube-apiserver 1.36 names the resource here, and not the kind.
    field, message = "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": field}]
    details = {**_named(kind, name), "causes": causes}
    return ApiError(422, "Invalid", f'{kind.qualified} "{name}" is invalid: {field}: {message}', details)


def bad_patch(patched: str, why: str) -> ApiError:
    """Return the error for a patch whose result no longer decodes as its kind."""
    message = f"Invalid value: {json.dumps(patched)}: {why}"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
    return ApiError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": causes})


def namespace_terminating(kind: Kind, name: str, namespace: str) -> ApiError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = f"namespace {namespace} is being terminated"
    details = _named(kind, name)
    # kubectl drain goes by this cause, and waits for the pods of such a namespace.
    details["causes"] = [{"reason": "NamespaceTerminating", "message": cause, "field": "metadata.namespace"}]
    return ApiError(403, "Forbidden", f'{kind.qualified} "{name}" is forbidden: {why}', details)


def gone(requested: int, oldest: int) -> ApiError:
    # Kubernetes: a watch from such a version must list again.
    return ApiError(410, "Expired", f"too old resource version: {requested} ({oldest})")


def continue_expired() -> ApiError:
    message = (
        "The provided continue parameter is too old to display a consistent list result. Start a new list without it."
    )
    return ApiError(410, "Expired", message)


def too_many_requests(cause: str, retry_after_s: int = 0) -> ApiError:
    # Measured: kube-apiserver 1.36 has the budget's name and its numbers only in this cause.
    details: Details = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    return ApiError(
        429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", details
    )


def too_large_resource_version(requested: int, current: int) -> ApiError:
    # Kubernetes: a list from a later version waits for it, then asks the client to try again in a second.
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return ApiError(504, "Timeout", f"Timeout: Too large resource version: {requested}, current: {current}", details)


_INJECTED = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def injected(code: int, retry_after_s: float = 0.0) -> ApiError:
    """Return the error of a fault added on purpose. A real server sends Retry-After with 429 and 503, so
    these do too.
    """
    after = round(retry_after_s) or (1 if code in (429, 503) else 0)
    details: Details | None = {"retryAfterSeconds": after} if after else None
    return ApiError(code, _INJECTED.get(code, ""), f"Injected: status {code}.", details)


def internal(message: str) -> ApiError:
    # Kubernetes: two budgets on one pod are a Status with a message and no reason.
    return ApiError(500, "", message)
