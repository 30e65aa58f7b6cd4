"""Plain JSON over the official client's authentication and TLS: no models are loaded, nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from vgpuctl.kube.access import Access, KubernetesSettings, read_access
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
from vgpuctl.wire import replies

ANSWER_WITHIN_S = 30
#: The longest wait that a server may impose; if it names a longer one, we ask earlier.
LONGEST_WAIT_S = 60.0
#: Decision 0015: sixteen requests at once. Beside them, each kind that is followed has one watch.
CONNECTIONS = 40
JSON = "application/json"
AGENT = "vgpuctl"
#: The server's own words. Its errors of these kinds have no reason that sets them apart.
#: Kubernetes 1.36, eviction: 500 for two budgets, 403 while a budget's controller has too many to confirm.
_TWO_BUDGETS, _TOO_MANY_EVICTIONS = "more than one PodDisruptionBudget", "DisruptedPods map too big"
#: Kubernetes: custom resources such as Machines refuse strategic patches (compared with kube-apiserver 1.36).
MERGE_PATCH = "application/merge-patch+json"
#: Ask for a list of metadata alone. Servers that do not support this send the whole objects.
#: Compared with kube-apiserver 1.36, which leaves out what is in the objects.
METADATA_ONLY = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"

Object = dict[str, Any]


class NotFoundError(RequestFailedError):
    """The object does not exist."""


class NotAllowedError(UnreachableError):
    """Our account lacks this right."""


# Measured: listing 5,000 pods took 1.6 s as typed models and 0.2 s as plain JSON.
# One list of nodes as a whole program took 0.84 s through CoreV1Api and 0.32 s this way.
class Client:
    """The Kubernetes API over one connection pool for all threads."""

    def __init__(self, settings: KubernetesSettings) -> None:
        self.settings = settings
        found = read_access(settings)
        self._configuration = found.configuration
        self.server, self.unverified = found.server, found.unverified
        self.called = f"Kubernetes at {self.server}"
        self._pool, self._before_paths = _pool(found)

    def get(self, path: str, **query: str) -> Object:
        return self._json("GET", path, query=query)

    def metadata(self, path: str, **query: str) -> list[Object]:
        """Return the metadata of a list's objects."""
        found = self._json("GET", path, query=query, accept=METADATA_ONLY)
        try:
            return [dict(item["metadata"]) for item in found.get("items") or ()]
        except (TypeError, ValueError, KeyError) as error:
            raise self.garbled("a list whose objects have no metadata") from error

    def post(self, path: str, body: Object) -> Object:
        return self._json("POST", path, body=body)

    def put(self, path: str, body: Object) -> Object:
        return self._json("PUT", path, body=body)

    def patch(self, path: str, body: Object) -> None:
        """Patch an object. Its new state arrives through its stream."""
        self._read("PATCH", path, body=body, content_type=MERGE_PATCH)

    def delete(self, path: str, body: Object | None = None) -> None:
        self._read("DELETE", path, body=body)

    def watch(self, path: str, version: str, wait_s: int, **more: str) -> Any:
        """Return an open stream of change events; the caller reads its lines and closes it."""
        query = {
            **more,
            "watch": "true",
            "resourceVersion": version,
            # KEP-956: a bookmark moves our version on while little changes. So the next watch need not list anew.
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(wait_s),
        }
        return self._call("GET", path, query=query, wait_s=wait_s)

    def garbled(self, why: str) -> VgpuctlError:
        """Return the error for an answer that is not valid Kubernetes."""
        return PassingError(
            f"{self.called} answers, but not as Kubernetes does: {why}.", hint="Check the server in the kubeconfig."
        )

    def _json(self, method: str, path: str, **options: Any) -> Object:
        body = self._read(method, path, **options)
        try:
            found = json.loads(body)
        # Decision 0018: such a server may answer later. An HTML page with status 200 once ended a stream's thread.
        except (ValueError, RecursionError, MemoryError) as error:
            raise self.garbled("its answer is not JSON") from error
        if not isinstance(found, dict):
            raise self.garbled("its answer is not an object")
        return found

    def _read(self, method: str, path: str, **options: Any) -> bytes:
        """Return the whole answer; an interrupted one is an error. The layer below bounds its size and time."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        response = self._call(method, path, **options)
        try:
            found: bytes = response.read()
        except (HTTPError, OSError) as error:
            raise _connection_error(self.server, error) from error
        finally:
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
        wait_s: int = 0,
    ) -> Any:
        headers = {"Accept": accept, "User-Agent": AGENT, **self._authorization()}
        if body is not None:
            headers["Content-Type"] = content_type
        url = f"{self._before_paths}{path}{'?' + urlencode(query) if query else ''}"
        payload = None if body is None else json.dumps(body).encode()
        # A watch has no size of its own. Its reader bounds each event (decision 0018).
        replies.begin(self.called, self.settings.bounds, ANSWER_WITHIN_S, wait_s=wait_s, endless=wait_s > 0)
        return self._answer(method, url, body=payload, headers=headers, timeout=ANSWER_WITHIN_S + wait_s)

    def _authorization(self) -> dict[str, str]:
        """Return the authorization header. It is made for each request, because tokens are renewed while we run."""
        try:
            auth = self._configuration.auth_settings().get("BearerToken")
        except Exception as error:
            # The error's text may quote the token.
            text = f"The token for {self.called} cannot be read again: {type(error).__name__}."
            raise PassingError(text) from None
        return {auth["key"]: auth["value"]} if auth else {}

    def _answer(self, method: str, url: str, **options: Any) -> Any:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            # A redirected request would take the token along.
            response = self._pool.urlopen(method, url, preload_content=False, redirect=False, **options)
        except (HTTPError, OSError) as error:
            raise _connection_error(self.server, error) from error
        if response.status >= 400:
            after = response.headers.get("Retry-After")
            raise error_for_status(response.status, _reason(response), self.server, after=after)
        if response.status >= 300:
            response.close()
            raise self.garbled(f"it redirects us (HTTP {response.status})")
        return response


def _reason(response: Any) -> bytes:
    """Return what the server says about an error; nothing if that is not a short text."""
    try:
        found: bytes = response.read()
    except Exception:
        response.close()
        return b""
    return found


def _pool(found: Access) -> tuple[Any, str]:
    """Return the official client's connections, with its proxies, and the prefix of all paths.

    The rest of the official client's work on a request is slow. Finding the server's pool again for each request is
    slow too, and only a proxy may need it.
    """
    from kubernetes.client.rest import RESTClientObject  # noqa: PLC0415
    from urllib3 import disable_warnings  # noqa: PLC0415
    from urllib3.exceptions import InsecureRequestWarning  # noqa: PLC0415
    from urllib3.util import parse_url  # noqa: PLC0415

    configuration = found.configuration
    # Official client 37.0.2: a GET with 429 is repeated unasked, a POST is not. Here the caller decides.
    configuration.retries = False
    configuration.connection_pool_maxsize = CONNECTIONS
    if found.unverified:
        # The command warns once itself; a warning for each request adds nothing.
        disable_warnings(InsecureRequestWarning)
    configuration.proxy_ssl_context = found.tls.context()
    manager = RESTClientObject(configuration).pool_manager
    # Decision 0018: urllib3 reads its certificate files for each connection. This context was loaded once.
    manager.pool_classes_by_scheme = replies.bounded(manager.pool_classes_by_scheme, found.tls.context)
    # Decision 0015: looking the server's pool up for each request was a fifth of urllib3's time.
    if manager.proxy:
        return manager, found.server
    return manager.connection_from_url(found.server), (parse_url(found.server).path or "").rstrip("/")


def _connection_error(server: str, error: Exception) -> VgpuctlError:
    from urllib3.exceptions import MaxRetryError, SSLError  # noqa: PLC0415

    reason = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    if isinstance(reason, SSLError):
        return UnreachableError(
            f"The certificate of Kubernetes at {server} is not trusted: {reason}",
            hint="Compare certificate-authority-data in the kubeconfig with the server's CA.",
        )
    return PassingError(
        f"Kubernetes at {server} does not answer: {type(reason).__name__}.", hint="Check the server in the kubeconfig."
    )


def error_for_status(status: int, body: bytes, server: str, *, after: str | None = None) -> VgpuctlError:
    """Turn a Status object into one of our own errors. `after`: the header Retry-After, in seconds in Kubernetes."""
    error = _error_for_status(status, body, server)
    if after and after.isdecimal():
        error.after_s = min(float(after), LONGEST_WAIT_S)
        error.hint = error.hint or f"It asks to wait {error.after_s:.0f} s."
    return error


def _error_for_status(status: int, body: bytes, server: str) -> VgpuctlError:
    try:
        answer = json.loads(body)
        message = str(answer.get("message") or status)
        causes = [cause.get("reason") for cause in (answer.get("details") or {}).get("causes") or ()]
    except (ValueError, AttributeError):
        message, causes = f"HTTP {status}", []
    match status:
        # Kubernetes: these two refusals of an eviction are 403 as well, but they pass.
        # While a namespace terminates, kubectl drain tries again, too.
        case 401 | 403 if "NamespaceTerminating" not in causes and _TOO_MANY_EVICTIONS not in message:
            hint = (
                "Check the kubeconfig's user."
                if status == 401
                else "vgpuctl rights kubernetes prints the rights that vgpuctl needs, for kubectl apply -f -"
            )
            kind = UnreachableError if status == 401 else NotAllowedError
            return kind(f"Kubernetes at {server} does not allow that: {message}", hint=hint)
        case 404 | 409:
            return NotFoundError(message) if status == 404 else ChangedMeanwhileError(message)
        case 429:
            throttled = PassingError(f"Kubernetes at {server} gets too many requests just now: {message}")
            # Kubernetes: only this cause tells a budget from a busy server. kubectl drain does not read it.
            return BudgetError(message) if "DisruptionBudget" in causes else throttled
        # Kubernetes, 410: the token of a list's next page has expired. The list is read anew.
        case 410 | 502 | 503 | 504:
            return PassingError(f"Kubernetes at {server} cannot answer just now: {message}")
        # kubectl drain fails at the first 500. We try a few times, in case it passes.
        case 403 | 500:
            return SeveralBudgetsError(message) if _TWO_BUDGETS in message else TryAgainError(message)
    return RequestFailedError(message)
