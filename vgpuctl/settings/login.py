"""Which vCenter, which user, and what to trust. Settings that belong to another vCenter are never mixed in.

A password is for one user at one vCenter. So a source that names another vCenter gives nothing, and a source that names
another user gives no password. Of the variable families of other tools only one is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from vgpuctl.model.errors import UsageError
from vgpuctl.settings import passwords
from vgpuctl.settings.address import Address, address
from vgpuctl.settings.environment import PASSWORD
from vgpuctl.settings.known_hosts import known_pin
from vgpuctl.settings.said import SettingValue, Source, first, yes
from vgpuctl.vsphere.session import VcenterSettings
from vgpuctl.vsphere.tls import Trust, normal

SECRETS = (PASSWORD, "password-file", "keyring")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The sources of settings, first to last."""

    flags: Source
    own: Source
    families: Sequence[Source]
    file: Source

    def all(self) -> list[LoginSource]:
        own = [LoginSource.of(self.flags, secret=False), LoginSource.of(self.own, secret=True)]
        families = [LoginSource.of(family, secret=True, family=True) for family in self.families]
        return [*own, *families, LoginSource.of(self.file, secret=False)]


@dataclass(frozen=True, slots=True)
class LoginSource:
    """One source, with its address parsed."""

    said: Source
    address: Address | None
    family: bool

    @classmethod
    def of(cls, said: Source, *, secret: bool, family: bool = False) -> LoginSource:
        if "vcenter" not in said:
            return cls(said, None, family)
        by = said["vcenter"].by
        found = address(said["vcenter"], secret=secret)
        in_url = {"vcenter-user": found.user, PASSWORD: found.password}
        named = said.get("vcenter-user")
        if named and found.user not in {None, named.value}:
            del in_url[PASSWORD]
        return cls(
            {name: SettingValue(value, by) for name, value in in_url.items() if value} | dict(said), found, family
        )


@dataclass(frozen=True, slots=True)
class Password:
    """A password. `reread` reads it again from a source that may change while we run.

    Our environment does not change.
    """

    value: str = field(repr=False)
    by: str
    reread: Callable[[], str] | None = field(default=None, repr=False)

    @classmethod
    def read(cls, source: Callable[[], str], by: str) -> Password:
        return cls(source(), by, source)


def vcenter(places: Places) -> VcenterSettings:
    every = places.all()
    chosen = _chosen(every)
    heard = _heard(every, chosen)
    user = first(heard, "vcenter-user")
    if user is None:
        others = [place for place in every if place.said not in heard]
        raise UsageError(f"No user for vCenter {chosen}.", hint=_every_way("user") + _unheard(others))
    password = _password(heard, chosen, user)
    if password is None:
        raise UsageError(
            f"No password for {user.value} at vCenter {chosen}.", hint=_every_way(PASSWORD) + _unheard(every)
        )
    return VcenterSettings(
        host=chosen.host,
        port=chosen.port,
        path=chosen.path,
        user=user.value,
        password=password.value,
        reread=password.reread,
        trust=_trust(heard, chosen),
        login_said_by=f"The user, {user.value}, comes from {user.by}, the password from {password.by}.",
    )


def _chosen(every: list[LoginSource]) -> Address:
    """Return the first vCenter that is named.

    If other tools' variables decide, they must agree: a guess may hit the wrong VMs.
    """
    place = next((place for place in every if place.address), None)
    if place is None or place.address is None:
        raise UsageError("No vCenter is named.", hint=_every_way("vcenter"))
    other = next((p for p in every if place.family and p.family and p.address not in {None, place.address}), None)
    if other:
        raise UsageError(
            f"{place.said['vcenter'].by} names {place.address}, {other.said['vcenter'].by} names {other.address}.",
            hint="Say which one: --vcenter HOST, or VGPUCTL_VCENTER.",
        )
    return place.address


def _heard(every: list[LoginSource], chosen: Address) -> list[Source]:
    fitting = [place for place in every if place.address in {None, chosen}]
    families = [place for place in fitting if place.family]
    # Prefer a family that names this vCenter to one that names none; then one with a password.
    best = max(families, key=lambda p: (p.address is not None, PASSWORD in p.said), default=None)
    return [place.said for place in fitting if not place.family or place is best]


def _password(heard: list[Source], chosen: Address, user: SettingValue) -> Password | None:
    for source in heard:
        found = next((source[name] for name in SECRETS if name in source), None)
        if found is None or source.get("vcenter-user", user).value != user.value:
            continue
        if PASSWORD in source:
            return Password(found.value, found.by)
        if "password-file" in source:
            path = Path(found.value).expanduser()
            return Password.read(partial(passwords.from_file, path), f"the file {path}")
        if yes(found):
            return Password.read(partial(passwords.from_keyring, str(chosen), user.value), "the keyring")
    return None


def _trust(heard: list[Source], chosen: Address) -> Trust:
    """Return what to trust. A pin from any source is always checked; `insecure` only skips the CA."""
    pin = first(heard, "thumbprint") or known_pin(first(heard, "known-hosts"), chosen)
    digits = normal(pin.value) if pin else None
    if pin and not digits:
        raise UsageError(
            f"{pin.by} holds no thumbprint: 64 hex digits (SHA-256), or 40 (SHA-1), with or without colons."
        )
    files = first(heard, "ca-file")
    return Trust(
        ca_file=os.pathsep.join(str(Path(p).expanduser()) for p in files.value.split(os.pathsep)) if files else None,
        verify=not yes(first(heard, "insecure")),
        pin=digits,
        pinned_by=pin.by if pin else "",
    )


def _every_way(what: str) -> str:
    return {
        "vcenter": "Give --vcenter HOST, set VGPUCTL_VCENTER, GOVC_URL, VSPHERE_SERVER or VMWARE_HOST, or write "
        "vcenter: into ~/.config/vgpuctl/config.yaml. To try it without one: vgpuctl sim up",
        "user": "Give --vcenter-user, set VGPUCTL_VCENTER_USER, GOVC_USERNAME, VSPHERE_USER or VMWARE_USER, or write "
        "vcenter-user: into the settings file.",
        PASSWORD: "Set VGPUCTL_PASSWORD, GOVC_PASSWORD, VSPHERE_PASSWORD or VMWARE_PASSWORD, or give "
        "--password-file FILE or --keyring (VGPUCTL_PASSWORD_FILE, VGPUCTL_KEYRING, or in the settings file).",
    }[what]


def _unheard(places: list[LoginSource]) -> str:
    """Name passwords that belong to another vCenter or user: people wonder why they were not used."""
    at_hand = [place.said[name].by for place in places for name in SECRETS if name in place.said]
    if not at_hand:
        return ""
    return f"\nNot used, for it stands beside another vCenter or user: {', '.join(dict.fromkeys(at_hand))}."
