"""One login at vCenter, shared by all threads, renewed after it ends."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

from vgpuctl.model.errors import UnreachableError
from vgpuctl.vsphere.faults import translated
from vgpuctl.vsphere.throttle import Throttle
from vgpuctl.vsphere.tls import Trust, context, thumbprint_of
from vgpuctl.wire import replies
from vgpuctl.wire.replies import Bounds

CONNECT_WITHIN_S = 10
#: A server that hangs delays the end of a command no longer than this.
LOGOUT_WITHIN_S = 2.0
MAX_VERSIONS_BYTES = 1 << 20
#: As many connections stay open as threads send at once: a handshake costs more than a call.
#: pyVmomi keeps five by default. Decision 0015: a TLS handshake costs about five times as much as a request.
CONNECTIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class VcenterSettings:
    """Where vCenter is, and our login. The password never appears when the settings are printed.

    `reread` reads the password again from its source; None if it cannot change while we run.
    """

    host: str
    port: int = 443
    path: str = "/sdk"
    user: str
    password: str = field(repr=False)
    reread: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    trust: Trust = field(default_factory=Trust)
    bounds: Bounds = field(default_factory=Bounds)
    #: Where the login came from, for the hint: `the user comes from …, the password from …`.
    login_origin: str = field(default="", compare=False)

    @property
    def server(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def unverified(self) -> bool:
        return not (self.trust.verify or self.trust.pin)


class LoginRefusedError(UnreachableError):
    """vCenter does not accept this user and password. Another try within `after_s` might lock the account."""


# pyVim's SmartConnect is not used: it keeps one global connection, and verifies no certificate of localhost.
# Nor is pyVmomi's VimSessionOrientedStub: it repeats calls after a socket error, so a task may run twice.
class Session:
    """A vCenter session. pyVmomi loads here, so that `--help` stays quick.

    vCenter ends a session after 30 minutes without a call. Ours stays open: the stream's `WaitForUpdatesEx` returns and
    is sent again at least each minute.
    """

    def __init__(self, settings: VcenterSettings) -> None:
        self.settings = settings
        self.content: Any = None
        self.key = ""
        self._stub: Any = None
        self._lock = threading.Lock()
        self._logged_in = self._closed = self._tried = False
        self._throttle = Throttle()

    def open(self) -> Session:
        """Log in, unless an earlier login still holds: vCenter limits the number of sessions."""
        s = self.settings
        with self._lock, translated(s.server), _untrusted_explained(s):
            if self._closed:
                raise UnreachableError(f"The session with vCenter {s.server} is closed.")
            # Decision 0018: a new login for each try left a session behind at vCenter each time.
            if not self._is_valid():
                self._log_in()
        return self

    @property
    def version(self) -> str:
        """Return the API version in pyVmomi's words: the newest that both sides know."""
        return str(self._stub.version)

    def object(self, kind: str, moid: str) -> Any:
        """Return a managed object by its id."""
        from pyVmomi import vim  # noqa: PLC0415

        return getattr(vim, kind)(moid, self._stub)

    def close(self) -> None:
        """Log out, also from a login that is still under way."""
        self._closed = True
        logout = threading.Thread(target=self._log_out, name="logout", daemon=True)
        logout.start()
        logout.join(LOGOUT_WITHIN_S)

    def _is_valid(self) -> bool:
        """True if vCenter still knows the session.

        If the server does not answer, the error is raised here and no login is tried.
        """
        from pyVmomi import vmodl  # noqa: PLC0415

        try:
            return self._logged_in and self.content.sessionManager.currentSession is not None
        # vSphere: NotAuthenticated or ManagedObjectNotFound, depending on the server.
        except vmodl.MethodFault:
            return False

    def _log_in(self) -> None:
        from pyVmomi import vim  # noqa: PLC0415

        from vgpuctl.vsphere.stub import Stub  # noqa: PLC0415

        if (wait_s := self._throttle.wait_s()) > 0:
            raise self._refused(wait_s)
        s = self.settings
        password, self._logged_in = self._password(), False
        tls = context(s.trust, s.server)
        self._stub = Stub(
            s.server,
            s.bounds,
            host=s.host,
            port=s.port,
            path=s.path,
            # Asked for before the login, so that a server that is no vCenter gets no password.
            version=_newest_version(s, tls),
            sslContext=tls,
            httpConnectionTimeout=CONNECT_WITHIN_S,
            poolSize=CONNECTIONS,
        )
        self.content = vim.ServiceInstance("ServiceInstance", self._stub).RetrieveContent()
        try:
            self.key = str(self.content.sessionManager.Login(s.user, password, None).key)
        except vim.fault.InvalidLogin as fault:
            self._throttle.refused()
            raise self._refused(self._throttle.wait_s()) from fault
        self._logged_in = True
        self._throttle.accepted()

    def _password(self) -> str:
        """Return the password. Each login after the first reads it again, because it may have changed."""
        not_first, self._tried = self._tried, True
        return self.settings.reread() if not_first and self.settings.reread else self.settings.password

    def _refused(self, wait_s: float) -> LoginRefusedError:
        text = f"vCenter {self.settings.server} does not accept this user and password"
        if wait_s:
            at = datetime.now().astimezone() + timedelta(seconds=wait_s)
            text += f"; next try at {at:%H:%M}, because five refusals lock an account"
        error = LoginRefusedError(f"{text}.", hint=self.settings.login_origin or None)
        # Decision 0018: a command ends here. Streams and the daemon wait for so long.
        error.after_s = wait_s
        return error

    def _log_out(self) -> None:
        with suppress(Exception), self._lock:  # If the logout fails, vCenter ends the idle session by itself.
            if self._logged_in:
                self._logged_in = False
                self.content.sessionManager.Logout()


@contextmanager
def _untrusted_explained(s: VcenterSettings) -> Iterator[None]:
    """Explain a certificate that no CA vouches for, with the thumbprint that a person needs to decide."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        found = thumbprint_of(s.host, s.port)
        raise UnreachableError(
            f"The certificate of vCenter {s.server} is not trusted: {error.verify_message}.",
            hint="Give its CA with --ca-file FILE"
            + (
                f", or, once you have compared this thumbprint on vCenter itself, pin it:\n  --thumbprint {found}"
                if found
                else "."
            ),
        ) from error


def _newest_version(s: VcenterSettings, tls: ssl.SSLContext) -> str:
    """Return the newest API that both sides know.

    pyVim's own check has no timeout, and accepts servers other than vCenter.
    """
    from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap  # noqa: PLC0415

    offered = _offered_versions(s, tls)
    common = (version for version in GetServiceVersions("vim25") if versionIdMap[version] in offered)
    found: str | None = next(common, None)
    if found is None:
        raise UnreachableError(
            f"{s.server}{s.path} answers, but not as a vCenter does.", hint="Check the address of vCenter."
        )
    return found


def _offered_versions(s: VcenterSettings, tls: ssl.SSLContext) -> set[str]:
    # Decision 0008: pyVmomi's own look-up of versions does not use a pinned thumbprint.
    replies.begin(f"vCenter {s.server}", s.bounds, CONNECT_WITHIN_S)
    connection = replies.BoundedHTTPSConnection(s.host, s.port, timeout=CONNECT_WITHIN_S, context=tls)
    try:
        connection.request("GET", f"{s.path}/vimServiceVersions.xml")
        return _versions(connection.getresponse().read(MAX_VERSIONS_BYTES))
    finally:
        connection.close()


def _versions(answer: bytes) -> set[str]:
    try:
        return {version.text or "" for version in ElementTree.fromstring(answer).iter("version")}  # noqa: S314
    except (ElementTree.ParseError, ValueError, LookupError):
        return set()
