"""One login at vCenter, shared by all threads, renewed where it ended."""

from __future__ import annotations

import os
import ssl
import threading
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.model.errors import UsageError
from vgpuctl.vsphere.faults import translated

ANSWER_WITHIN_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class VcenterSettings:
    """Where vCenter is and who we are. The password is in no print of it."""

    host: str
    port: int = 443
    path: str = "/sdk"
    user: str
    password: str = field(repr=False)
    ca_file: str | None = None
    verify: bool = True

    @property
    def server(self) -> str:
        return f"{self.host}:{self.port}"


class Session:
    """pyVmomi loads here, so that `--help` stays quick."""

    def __init__(self, settings: VcenterSettings) -> None:
        self.settings = settings
        self.content: Any = None
        self._stub: Any = None
        self._lock = threading.Lock()

    def open(self) -> Session:
        """Log in, anew if need be."""
        from pyVim.connect import SmartStubAdapter  # noqa: PLC0415
        from pyVmomi import vim  # noqa: PLC0415

        s = self.settings
        with self._lock, translated(s.server):
            stub = SmartStubAdapter(
                host=s.host,
                port=s.port,
                path=s.path,
                sslContext=_tls(s),
                httpConnectionTimeout=ANSWER_WITHIN_S,
            )
            content: Any = vim.ServiceInstance("ServiceInstance", stub).RetrieveContent()
            content.sessionManager.Login(s.user, s.password, None)
            self.content, self._stub = content, stub
        return self

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


def _tls(settings: VcenterSettings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for file in filter(None, (settings.ca_file or "").split(os.pathsep)):
        try:
            context.load_verify_locations(file)
        except OSError as error:
            raise UsageError(f"The CA file {file} cannot be used: {error}.", hint="See GOVC_TLS_CA_CERTS.") from error
    if not settings.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
