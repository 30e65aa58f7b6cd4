"""Where vCenter is, as people write it: a host, host:port, or an https URL that may hold a user and a password."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from vgpuctl.model.errors import UsageError
from vgpuctl.settings.values import SettingValue


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a vCenter. Equal host and port mean the same vCenter."""

    host: str
    port: int
    path: str = field(compare=False)
    user: str | None = field(compare=False)
    password: str | None = field(repr=False, compare=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == 443 else f"{host}:{self.port}"


def address(setting: SettingValue, *, secret: bool) -> Address:
    """Read an address. `secret`: it may hold a password. No message quotes the text, because it might hold one."""
    try:
        found = _address(urlsplit(setting.value if "://" in setting.value else f"https://{setting.value}"))
    except ValueError:
        raise UsageError(
            f"{setting.origin} is not the address of a vCenter, "
            "such as vcenter.example.com or https://vcenter.example.com:8443.",
            hint="Only https is used. Percent-encode characters such as / # ? @ in a user or password.",
        ) from None
    if found.password is not None and not secret:
        raise UsageError(
            f"{setting.origin} contains a password, which others may read there: in ps, the shell's history, a file.",
            hint="Remove it, and set VGPUCTL_PASSWORD, or give --password-file FILE or --keyring. "
            "Change the password, because others may have seen it.",
        )
    return found


def _address(url: SplitResult) -> Address:
    if url.scheme != "https" or not url.hostname or url.query or url.fragment or " " in url.netloc:
        raise ValueError
    return Address(
        host=url.hostname,
        # As for govc's GOVC_URL: https, 443 and /sdk are understood.
        port=url.port or 443,
        path=url.path.rstrip("/") or "/sdk",
        user=unquote(url.username) if url.username else None,
        password=unquote(url.password) if url.password else None,
    )
