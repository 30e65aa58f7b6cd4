"""Plain JSON over the official client's own authentication and TLS: no models are loaded, nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vgpuctl.kube.access import KubernetesSettings, configuration
from vgpuctl.model.errors import (
    BudgetError,
    ChangedMeanwhileError,
    PassingError,
    RequestFailedError,
    SeveralBudgetsError,
    TryAgainError,
    UnreachableError,
    VgpuctlError,
)

ANSWER_WITHIN_S = 30
#: The longest that a server may ask us to wait; one that names more is asked earlier.
LONGEST_WAIT_S = 60.0
CONNECTIONS = 40
#: The server's own words, where it gives no reason of a kind that could be told from others.
_TWO_BUDGETS, _TOO_MANY_GO = "more than one PodDisruptionBudget", "DisruptedPods map too big"
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
#: A list without what is in the objects, from servers that can; from others, all of it.
NAMES_ONLY = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"

Object = dict[str, Any]


class NotFoundError(RequestFailedError):
    """There is no such object."""


class NotAllowedError(UnreachableError):
    """Our account lacks this right."""


class Client:
    """One connection pool for all threads."""

    def __init__(self, settings: KubernetesSettings) -> None:
        self.settings = settings
        self._api = _api_client(settings)
        self.server = str(self._api.configuration.host)

    def get(self, path: str, **query: str) -> Object:
        return self._json("GET", path, query=query)

    def names(self, path: str, **query: str) -> list[str]:
        """Of a list, the objects' names."""
        found = self._json("GET", path, query=query, accept=NAMES_ONLY)
        return [str(each["metadata"]["name"]) for each in found.get("items") or ()]

    def post(self, path: str, body: Object) -> Object:
        return self._json("POST", path, body=body)

    def put(self, path: str, body: Object) -> Object:
        return self._json("PUT", path, body=body)

    def patch(self, path: str, body: Object) -> Object:
        return self._json("PATCH", path, body=body, content_type=MERGE_PATCH)

    def delete(self, path: str, body: Object | None = None) -> Object:
        return self._json("DELETE", path, body=body)

    def watch(self, path: str, version: str, wait_s: int) -> Any:
        """An open stream of change events; the caller reads its lines and closes it."""
        query = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(wait_s),
        }
        return self._call("GET", path, query=query, timeout_s=wait_s + ANSWER_WITHIN_S)

    def _json(self, method: str, path: str, **options: Any) -> Object:
        response = self._call(method, path, **options)
        found: Object = json.loads(response.read())
        response.release_conn()
        return found

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout_s: int = ANSWER_WITHIN_S,
    ) -> Any:
        headers = {"Accept": accept} | ({"Content-Type": content_type} if body is not None else {})
        request = self._api.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        return self._answer(request, timeout_s)

    def _answer(self, request: Any, timeout_s: int) -> Any:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            response = self._api.call_api(*request, _request_timeout=timeout_s).response
        except (HTTPError, OSError) as error:
            raise _no_answer(self.server, error) from error
        if response.status >= 300:
            after = response.headers.get("Retry-After")
            raise refusal(response.status, response.read(), self.server, after=after)
        return response


def _api_client(settings: KubernetesSettings) -> Any:
    from kubernetes.client.api_client import ApiClient  # noqa: PLC0415
    from urllib3 import disable_warnings  # noqa: PLC0415
    from urllib3.exceptions import InsecureRequestWarning  # noqa: PLC0415

    found = configuration(settings)
    found.retries = False
    found.connection_pool_maxsize = CONNECTIONS
    if not found.verify_ssl:
        # The kubeconfig says so by name: one warning a request would say no more.
        disable_warnings(InsecureRequestWarning)
    return ApiClient(found)


def _no_answer(server: str, error: Exception) -> VgpuctlError:
    from urllib3.exceptions import MaxRetryError, SSLError  # noqa: PLC0415

    reason = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    if isinstance(reason, SSLError):
        return UnreachableError(
            f"The certificate of Kubernetes at {server} is not trusted: {reason}",
            hint="Check certificate-authority-data in the kubeconfig.",
        )
    return PassingError(
        f"Kubernetes at {server} does not answer: {type(reason).__name__}.", hint="Is KUBECONFIG right?"
    )


def refusal(status: int, body: bytes, server: str, *, after: str | None = None) -> VgpuctlError:
    """A Status object as one of our own errors. `after`: the header Retry-After; Kubernetes counts it in seconds."""
    error = _refusal(status, body, server)
    if after and after.isdecimal():
        error.after_s = min(float(after), LONGEST_WAIT_S)
        error.hint = error.hint or f"It asks to wait {error.after_s:.0f} s."
    return error


def _refusal(status: int, body: bytes, server: str) -> VgpuctlError:
    try:
        answer = json.loads(body)
        message = str(answer.get("message") or status)
        causes = [cause.get("reason") for cause in (answer.get("details") or {}).get("causes") or ()]
    except (ValueError, AttributeError):
        message, causes = f"HTTP {status}", []
    match status:
        case 401 | 403 if "NamespaceTerminating" not in causes and _TOO_MANY_GO not in message:
            hint = "Check the kubeconfig's user." if status == 401 else "See the docs for the rights vgpuctl needs."
            kind = UnreachableError if status == 401 else NotAllowedError
            return kind(f"Kubernetes at {server} does not allow that: {message}", hint=hint)
        case 404 | 409:
            return NotFoundError(message) if status == 404 else ChangedMeanwhileError(message)
        case 429 if "DisruptionBudget" not in causes:
            return PassingError(f"Kubernetes at {server} is asked too much just now: {message}")
        case 502 | 503 | 504:
            return PassingError(f"Kubernetes at {server} cannot answer just now: {message}")
        case 403 | 429 | 500:
            return _passing(message, causes)
    return RequestFailedError(message)


def _passing(message: str, causes: list[str]) -> TryAgainError:
    if "DisruptionBudget" in causes:
        return BudgetError(message)
    return SeveralBudgetsError(message) if _TWO_BUDGETS in message else TryAgainError(message)
