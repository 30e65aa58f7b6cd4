"""The API server's address: it holds no secret, and no credential is sent to it in clear."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from vgpuctl.model.errors import UsageError

#: The parts of a kubeconfig's user that send a secret with each request.
CREDENTIALS = ("token", "tokenFile", "username", "password", "exec", "auth-provider")


def check(server: str, user: Mapping[str, Any], proxy: str | None, where: str) -> None:
    """Refuse an unsafe address before a kubeconfig's program runs and before anything is sent, without quoting it."""
    url = parts(server)
    if url is None:
        raise UsageError(
            f"The server of the cluster in {where} is not a URL.", hint="Write it as https://api.example.com:6443."
        )
    if url.username is not None or url.password is not None:
        raise UsageError(
            f"The server of the cluster in {where} contains a user or password, but addresses are printed.",
            hint="Remove it from the URL, and log in with a token, a certificate or an exec plugin.",
        )
    # Decision 0018: a token goes in clear to this machine only, as with `kubectl proxy`.
    if url.scheme == "https" or not any(user.get(name) for name in CREDENTIALS):
        return
    # Over plain HTTP a proxy elsewhere sees the token, too. Over TLS it sees a tunnel.
    if not is_loopback(url.hostname or "") or (proxy and not _is_local(proxy)):
        raise UsageError(
            f"{where} would send a token or password unencrypted to {printable(server)}.",
            hint="Use https://. Plain HTTP is allowed only to this machine, as for kubectl proxy.",
        )


def parts(server: str) -> SplitResult | None:
    """Return the parts of an address. Without a scheme it means plain HTTP, as the libraries read it."""
    try:
        url = urlsplit(server if "://" in server else f"http://{server}")
        _ = url.port
    except ValueError:
        return None
    return url if url.hostname and url.scheme in {"http", "https"} else None


def printable(server: str) -> str:
    """Return the address without user and password."""
    url = parts(server)
    return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl() if url else "an address that is not a URL"


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_local(proxy: str) -> bool:
    url = parts(proxy)
    return url is not None and is_loopback(url.hostname or "")
