"""Where the daemon's HTTP server listens, and how it proves itself and knows its readers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from vgpuctl.model.errors import UsageError
from vgpuctl.settings import Flags, sources_of
from vgpuctl.settings.values import LISTENING, SettingValue, Source, first_setting, is_true

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """An address, and files that are read again when they change. `port` 0: any free port."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    token: Path | None = None

    @property
    def on_loopback(self) -> bool:
        """True if only this machine can connect."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"


def listening(flags: Flags, given: Mapping[str, object], env: Mapping[str, str] = os.environ) -> Listening | None:
    """Return where to listen; None if nothing says so. `given`: the daemon's own flags."""
    sources = sources_of(flags, env)
    own = {name: SettingValue(str(value), f"--{name}") for name, value in given.items() if value is not None}
    ordered: tuple[Source, ...] = (own, sources.own, sources.file)
    found = {name: setting for name in LISTENING if (setting := first_setting(ordered, name))}
    if "listen" not in found:
        if surplus := found.keys() - {"listen-openly"}:
            raise UsageError(f"{found[min(surplus)].origin} is set, but no address to listen on.", hint="Add --listen.")
        return None
    host, port = _address(found["listen"])
    files = {name: Path(found[name].value).expanduser() for name in found if name not in {"listen", "listen-openly"}}
    made = Listening(
        host=host,
        port=port,
        certificate=files.get("listen-cert"),
        key=files.get("listen-key"),
        token=files.get("listen-token"),
    )
    _check(made, openly=is_true(found.get("listen-openly")))
    return made


def _address(setting: SettingValue) -> tuple[str, int]:
    """Return host and port. A port alone is on loopback, also with a colon before it."""
    host, _, port = setting.value.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    # A bare IPv6 address would lose its last group to the port.
    readable = port.isascii() and port.isdecimal() and int(port) <= 65535 and (":" not in host or host != bare)
    if not readable:
        raise UsageError(
            f"{setting.origin} must be HOST:PORT, or a port alone for this machine.",
            hint="For example 9464, 127.0.0.1:9464 or [::]:9464.",
        )
    return bare or LOOPBACK, int(port)


def _check(made: Listening, *, openly: bool) -> None:
    if (made.certificate is None) != (made.key is None):
        raise UsageError("--listen-cert and --listen-key belong together.", hint="Give both, or neither.")
    # The status names hosts, VMs, nodes and pods. A token that travels without TLS can be read on its way.
    missing = [
        what
        for what, there in (("a certificate", made.certificate is not None), ("a token", made.token is not None))
        if not there
    ]
    if missing and not made.on_loopback and not openly:
        raise UsageError(
            f"{made.host} can be reached by other machines, and {' and '.join(missing)} is missing.",
            hint="Give --listen-cert, --listen-key and --listen-token, or accept that others read: --listen-openly.",
        )
