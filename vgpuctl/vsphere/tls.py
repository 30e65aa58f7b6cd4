"""Which server we accept as vCenter: one with a certificate from a trusted CA, or only the one that was pinned."""

from __future__ import annotations

import hashlib
import os
import ssl
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.model.errors import UnreachableError, UsageError

#: By the number of hex digits. SHA-1 because vSphere's own tools show it; it is no longer safe against a forger.
ALGORITHMS = {40: "sha1", 64: "sha256"}
PROBE_WITHIN_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What makes a certificate acceptable. A pin always decides alone; no CA is asked then."""

    ca_file: str | None = None
    verify: bool = True
    pin: str | None = None
    pinned_by: str = field(default="--thumbprint", compare=False)


def parse_thumbprint(thumbprint: str) -> str | None:
    """Return a pasted thumbprint (colons or openssl's `… Fingerprint=` allowed) as lower-case hex; None if it is not
    one."""
    digits = "".join(thumbprint.rpartition("=")[2].split()).replace(":", "").lower()
    known = len(digits) in ALGORITHMS and all(digit in "0123456789abcdef" for digit in digits)
    return digits if known else None


def format_thumbprint(digits: str) -> str:
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2)).upper()


def context(trust: Trust, server: str) -> ssl.SSLContext:
    """Return the TLS context for every connection of one session."""
    if trust.pin:
        return _PinnedContext.of(trust, server)
    found = ssl.create_default_context()
    # As in govc, whose GOVC_TLS_CA_CERTS is a list of files.
    for file in filter(None, (trust.ca_file or "").split(os.pathsep)):
        try:
            found.load_verify_locations(file)
        except OSError as error:
            raise UsageError(f"The CA file {file} cannot be used: {error}.", hint="It must contain PEM.") from error
    if not trust.verify:
        found.check_hostname = False
        found.verify_mode = ssl.CERT_NONE
    return found


def thumbprint_of(host: str, port: int) -> str | None:
    """Return the thumbprint that a server shows now, for a message. It proves nothing about the server."""
    try:
        certificate = ssl.get_server_certificate((host, port), timeout=PROBE_WITHIN_S)
    except OSError:
        return None
    return format_thumbprint(hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest())


# pyVmomi 9.1.1: once its own thumbprint has matched, it verifies no later connection of a shared context.
class _PinnedSocket(ssl.SSLSocket):
    """Refuses a wrong certificate in the handshake: before any byte of ours, such as a password, is sent.

    pyVmomi's own pinning asks a CA first and its pin only if the CA says no. A foreign certificate that any CA signed
    would pass (SoapAdapter._Connect).
    """

    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        try:
            self.context.check(self.getpeercert(binary_form=True))  # type: ignore[attr-defined]
        except UnreachableError:
            self.close()
            raise


class _PinnedContext(ssl.SSLContext):
    """Puts the check into the socket class, so that no connection of pyVmomi can avoid it."""

    sslsocket_class = _PinnedSocket
    _trust: Trust
    _server: str

    @classmethod
    def of(cls, trust: Trust, server: str) -> _PinnedContext:
        found = cls(ssl.PROTOCOL_TLS_CLIENT)
        found.check_hostname = False
        # Decision 0008: a pin is checked instead of a CA, because vCenters mostly sign their own certificates.
        found.verify_mode = ssl.CERT_NONE
        found._trust, found._server = trust, server
        return found

    def wrap_bio(self, *_: Any, **__: Any) -> Any:
        """Refuse TLS without a socket: it would not use the checking socket class."""
        raise NotImplementedError("a pinned connection needs a socket")

    def check(self, certificate: bytes | None) -> None:
        pin = self._trust.pin or ""
        found = hashlib.new(ALGORITHMS[len(pin)], certificate or b"", usedforsecurity=False).hexdigest()
        if found != pin:
            raise UnreachableError(
                f"vCenter {self._server} shows another certificate than the pinned one. Nothing was sent to it.\n"
                f"  pinned  {format_thumbprint(pin)} ({self._trust.pinned_by})\n"
                f"  shown   {format_thumbprint(found)}",
                hint="If its certificate was renewed, compare the shown thumbprint on vCenter itself, and pin it. "
                "If not, another machine may intercept the connection.",
            )
