"""One login at vCenter, shared by all threads, renewed where it ended."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from typing import Any
from xml.etree import ElementTree

from vgpuctl.model.errors import UnreachableError
from vgpuctl.vsphere.faults import translated
from vgpuctl.vsphere.tls import Trust, context, thumbprint_of

CONNECT_WITHIN_S = 10
ANSWER_WITHIN_S = 120
MAX_VERSIONS_BYTES = 1 << 20
#: Kept open for as many threads as send at once: a handshake costs more than a call.
CONNECTIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class VcenterSettings:
    """Where vCenter is and who we are. The password is in no print of it."""

    host: str
    port: int = 443
    path: str = "/sdk"
    user: str
    password: str = field(repr=False)
    trust: Trust = field(default_factory=Trust)
    #: Where a person finds what was wrong: `the user comes from …, the password from …`.
    login_said_by: str = field(default="", compare=False)

    @property
    def server(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def unverified(self) -> bool:
        return not (self.trust.verify or self.trust.pin)


class Session:
    """pyVmomi loads here, so that `--help` stays quick.

    A session idles out after 30 minutes without a call. Ours does not: the stream's `WaitForUpdatesEx` returns and is
    sent again at least each minute.
    """

    def __init__(self, settings: VcenterSettings) -> None:
        self.settings = settings
        self.content: Any = None
        self._stub: Any = None
        self._lock = threading.Lock()

    def open(self) -> Session:
        """Log in, anew if need be."""
        from pyVmomi import vim  # noqa: PLC0415
        from pyVmomi.SoapAdapter import SoapStubAdapter  # noqa: PLC0415

        s = self.settings
        with self._lock, translated(s.server), _distrust_explained(s):
            tls = context(s.trust, s.server)
            stub = SoapStubAdapter(
                host=s.host,
                port=s.port,
                path=s.path,
                version=_newest_version(s, tls),
                sslContext=tls,
                httpConnectionTimeout=ANSWER_WITHIN_S,
                poolSize=CONNECTIONS,
            )
            content: Any = vim.ServiceInstance("ServiceInstance", stub).RetrieveContent()
            _log_in(content, s)
            self.content, self._stub = content, stub
        return self

    @property
    def version(self) -> str:
        """Of the API, as pyVmomi calls it: the newest that both know."""
        return str(self._stub.version)

    def object(self, kind: str, moid: str) -> Any:
        """A managed object by its id."""
        from pyVmomi import vim  # noqa: PLC0415

        return getattr(vim, kind)(moid, self._stub)

    def close(self) -> None:
        try:
            with translated(self.settings.server):
                self.content.sessionManager.Logout()
        except Exception:  # noqa: S110  # A logout that fails leaves a session that idles out by itself.
            pass


def _log_in(content: Any, s: VcenterSettings) -> None:
    from pyVmomi import vim  # noqa: PLC0415

    try:
        content.sessionManager.Login(s.user, s.password, None)
    except vim.fault.InvalidLogin as fault:
        raise UnreachableError(
            f"vCenter {s.server} does not accept this user and password.", hint=s.login_said_by or None
        ) from fault


@contextmanager
def _distrust_explained(s: VcenterSettings) -> Iterator[None]:
    """A certificate that no CA vouches for: what a person needs to decide is its thumbprint."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        found = thumbprint_of(s.host, s.port)
        raise UnreachableError(
            f"The certificate of vCenter {s.server} is not trusted: {error.verify_message}.",
            hint="Give its CA with --ca-file FILE"
            + (f", or pin it, once compared on vCenter itself:\n  --thumbprint {found}" if found else "."),
        ) from error


def _newest_version(s: VcenterSettings, tls: ssl.SSLContext) -> str:
    """The newest API that both sides know. pyVim's own look-up waits for ever, and shrugs at what is no vCenter."""
    from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap  # noqa: PLC0415

    offered = _offered_versions(s, tls)
    common = (version for version in GetServiceVersions("vim25") if versionIdMap[version] in offered)
    found: str | None = next(common, None)
    if found is None:
        raise UnreachableError(f"{s.server}{s.path} answers, but not as a vCenter does.", hint="Is this its address?")
    return found


def _offered_versions(s: VcenterSettings, tls: ssl.SSLContext) -> set[str]:
    connection = HTTPSConnection(s.host, s.port, timeout=CONNECT_WITHIN_S, context=tls)
    try:
        connection.request("GET", f"{s.path}/vimServiceVersions.xml")
        answer = connection.getresponse().read(MAX_VERSIONS_BYTES)
        return {version.text or "" for version in ElementTree.fromstring(answer).iter("version")}  # noqa: S314
    except ElementTree.ParseError:
        return set()
    finally:
        connection.close()
