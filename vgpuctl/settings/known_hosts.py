"""govc's file of known hosts: `host:port thumbprint`, one per line; the last line of a host counts."""

from __future__ import annotations

import os
from pathlib import Path

from vgpuctl.files.opening import MAX_BYTES, read_bounded
from vgpuctl.model.errors import UsageError
from vgpuctl.settings.address import Address
from vgpuctl.settings.values import SettingValue


def known_pin(files: SettingValue | None, server: Address) -> SettingValue | None:
    """Return the pinned thumbprint of a server.

    As in govc, a missing file knows no host. Unlike in govc, the pin is checked even if a CA vouches for the server.
    """
    found = None
    for file in filter(None, files.value.split(os.pathsep) if files else ()):
        for host, _, thumbprint in (line.partition(" ") for line in _lines(Path(file).expanduser())):
            if thumbprint and host.lower() in _names(server):
                # As in govc, the last line of a host counts.
                found = SettingValue(thumbprint, f"{files.origin if files else ''} {file}")
    return found


def _names(server: Address) -> set[str]:
    host = f"[{server.host}]" if ":" in server.host else server.host
    return {str(server), f"{host}:{server.port}"}


def _lines(path: Path) -> list[str]:
    try:
        return read_bounded(path)[:MAX_BYTES].decode("utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The file of known hosts {path} cannot be read: {type(error).__name__}.") from error
