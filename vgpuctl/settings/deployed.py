"""The settings file of a deployed daemon: what holds here, without secrets and without this machine's paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vgpuctl.files.opening import MAX_BYTES, read_bounded
from vgpuctl.model.errors import UsageError
from vgpuctl.settings.address import Address
from vgpuctl.settings.login import Sources, without_password
from vgpuctl.settings.values import SIZES, TIMES, first_setting

CA_FILE = "ca.pem"


@dataclass(frozen=True, slots=True)
class Deployed:
    """`settings`: for its settings file. `ca`: the certificates of CAs, as PEM; "" for none. `port`: vCenter's."""

    settings: Mapping[str, object]
    ca: str
    port: int


def deployed(sources: Sources) -> Deployed:
    """Return the settings of a daemon that is deployed from here. The Secret, not these, has the password."""
    login = without_password(sources)
    trust, ca = login.trust, _certificates(login.trust.ca_file)
    trusted = {
        "ca-file": CA_FILE if ca else None,
        "thumbprint": trust.pin,
        "insecure": None if trust.verify else True,
    }
    ours = (sources.flags, sources.own, sources.file)
    numbers = {name: setting.value for name in (*TIMES, *SIZES) if (setting := first_setting(ours, name))}
    found = {"vcenter": _spelt(login.server), "vcenter-user": login.user.value, **trusted}
    settings = {name: value for name, value in found.items() if value is not None}
    return Deployed(
        {**settings, **{name: _number(name, text) for name, text in numbers.items()}}, ca, login.server.port
    )


def _spelt(server: Address) -> str:
    return str(server) if server.path == "/sdk" else f"https://{server}{server.path}"


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{name} must be a number.") from None


def _certificates(files: str | None) -> str:
    """Return the contents of all CA files: the paths mean nothing elsewhere."""
    return "".join(_text(Path(file)) for file in files.split(os.pathsep)) if files else ""


def _text(path: Path) -> str:
    try:
        return read_bounded(path)[:MAX_BYTES].decode("ascii").rstrip("\n") + "\n"
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The CA file {path} cannot be read: {error}.") from None
