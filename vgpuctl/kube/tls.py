"""How the API server is verified, and our certificate for it. No key of a kubeconfig stays in a file."""

from __future__ import annotations

import ssl
import tempfile
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vgpuctl.model.errors import UsageError

#: A file, or the PEM text inside the kubeconfig.
Part = Path | bytes | None


@dataclass(slots=True)
class Tls:
    """One TLS context for all connections.

    It is made again after one of its files has changed: certificates are renewed while a daemon runs.
    """

    ca: Part
    certificate: Part
    key: Part
    verify: bool
    where: str
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _context: ssl.SSLContext | None = None
    _stamps: tuple[object, ...] = ()

    @classmethod
    def of(cls, found: Any, folder: Path, where: str) -> Tls:
        """Read the TLS settings from the official client's configuration. Its files in `folder` may then be deleted."""
        ca, certificate, key = (_part(name, folder) for name in (found.ssl_ca_cert, found.cert_file, found.key_file))
        # Decision 0018: urllib3 would read these files again for each connection.
        found.ssl_ca_cert = found.cert_file = found.key_file = None
        return cls(ca, certificate, key, bool(found.verify_ssl), where)

    def context(self) -> ssl.SSLContext:
        with self._lock:
            stamps = tuple(_stamp(part) for part in (self.ca, self.certificate, self.key))
            if self._context is None:
                self._context, self._stamps = self._make(), stamps
            elif stamps != self._stamps:
                # A file may be half written; the last context still works.
                with suppress(UsageError):
                    self._context, self._stamps = self._make(), stamps
            return self._context

    def _make(self) -> ssl.SSLContext:
        from urllib3.util.ssl_ import create_urllib3_context  # noqa: PLC0415

        context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if self.verify else ssl.CERT_NONE)
        try:
            if self.ca is None:
                context.load_default_certs()
            elif isinstance(self.ca, Path):
                context.load_verify_locations(self.ca)
            else:
                context.load_verify_locations(cadata=self.ca.decode())
            if self.certificate is not None:
                self._load_certificate(context)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"A certificate or key of {self.where} cannot be used: {_reason(error)}.",
                hint="certificate-authority, client-certificate and client-key must be PEM without password.",
            ) from None
        return context

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        """Load our certificate. OpenSSL reads keys only from files, so a file exists while it reads and no longer."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vgpuctl-")))
            files = [_as_file(part, folder / name) for part, name in ((self.certificate, "crt"), (self.key, "key"))]
            # Python's ssl: without this function, OpenSSL asks for a key's password on the terminal.
            context.load_cert_chain(files[0] or "", files[1], password=lambda: "")


def _part(name: str | None, folder: Path) -> Part:
    if not name:
        return None
    path = Path(name)
    # The official client writes what the kubeconfig holds inline into `folder`. Other files are people's own.
    return path.read_bytes() if path.is_relative_to(folder) else path


def _as_file(part: Part, path: Path) -> Path | None:
    if isinstance(part, bytes):
        path.touch(mode=0o600)
        path.write_bytes(part)
        return path
    return part


def _stamp(part: Part) -> object:
    if not isinstance(part, Path):
        return None
    found = part.stat() if part.exists() else None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)


def _reason(error: Exception) -> str:
    """Return the reason of an error, never a file's contents."""
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__)
