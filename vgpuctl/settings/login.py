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
from vgpuctl.settings.values import SettingValue, Source, first_setting, is_true
from vgpuctl.vsphere.session import VcenterSettings
from vgpuctl.vsphere.tls import Trust, parse_thumbprint

SECRETS = (PASSWORD, "password-file", "keyring")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of settings, first to last."""

    flags: Source
    own: Source
    families: Sequence[Source]
    file: Source

    def all(self) -> list[VcenterSource]:
        own = [VcenterSource.of(self.flags, secret=False), VcenterSource.of(self.own, secret=True)]
        families = [VcenterSource.of(family, secret=True, family=True) for family in self.families]
        return [*own, *families, VcenterSource.of(self.file, secret=False)]


@dataclass(frozen=True, slots=True)
class VcenterSource:
    """One source, with its address parsed."""

    settings: Source
    address: Address | None
    family: bool

    @classmethod
    def of(cls, settings: Source, *, secret: bool, family: bool = False) -> VcenterSource:
        if "vcenter" not in settings:
            return cls(settings, None, family)
        origin = settings["vcenter"].origin
        address_given = address(settings["vcenter"], secret=secret)
        in_url = {"vcenter-user": address_given.user, PASSWORD: address_given.password}
        named = settings.get("vcenter-user")
        if named and address_given.user not in {None, named.value}:
            del in_url[PASSWORD]
        from_url = {name: SettingValue(value, origin) for name, value in in_url.items() if value}
        return cls(from_url | dict(settings), address_given, family)


@dataclass(frozen=True, slots=True)
class Password:
    """A password. `reread` reads it again from a source that may change while we run.

    Our environment does not change.
    """

    value: str = field(repr=False)
    origin: str
    reread: Callable[[], str] | None = field(default=None, repr=False)

    @classmethod
    def read(cls, source: Callable[[], str], origin: str) -> Password:
        return cls(source(), origin, source)


@dataclass(frozen=True, slots=True)
class Login:
    """Which vCenter, as whom, and what to trust: all of a login but the password. `usable`: the sources it is from."""

    server: Address
    user: SettingValue
    trust: Trust
    usable: list[Source]


def without_password(sources: Sources) -> Login:
    """Return the login without its password, for manifests too: they name the Secret that holds it."""
    all_sources = sources.all()
    chosen = _chosen_vcenter(all_sources)
    usable = _usable_sources(all_sources, chosen)
    user = first_setting(usable, "vcenter-user")
    if user is None:
        others = [source for source in all_sources if source.settings not in usable]
        raise UsageError(
            f"No user is given for vCenter {chosen}.", hint=_how_to_set("user") + _unused_passwords(others)
        )
    return Login(chosen, user, _trust(usable, chosen), usable)


def vcenter(sources: Sources) -> VcenterSettings:
    login = without_password(sources)
    chosen, user = login.server, login.user
    password = _password(login.usable, chosen, user)
    if password is None:
        raise UsageError(
            f"No password is given for {user.value} at vCenter {chosen}.",
            hint=_how_to_set(PASSWORD) + _unused_passwords(sources.all()),
        )
    return VcenterSettings(
        host=chosen.host,
        port=chosen.port,
        path=chosen.path,
        user=user.value,
        password=password.value,
        reread=password.reread,
        trust=login.trust,
        login_origin=f"The user, {user.value}, comes from {user.origin}, the password from {password.origin}.",
    )


def _chosen_vcenter(all_sources: list[VcenterSource]) -> Address:
    """Return the first vCenter that is named.

    If other tools' variables decide, they must agree: a guess may hit the wrong VMs.
    """
    source = next((source for source in all_sources if source.address), None)
    if source is None or source.address is None:
        raise UsageError("No vCenter is given.", hint=_how_to_set("vcenter"))
    # Decision 0008: people have GOVC_* for one vCenter and VSPHERE_* for another in the same shell.
    families = [other for other in all_sources if source.family and other.family and other.address]
    other = next((other for other in families if other.address != source.address), None)
    if other:
        one, two = source.settings["vcenter"].origin, other.settings["vcenter"].origin
        raise UsageError(
            f"{one} names {source.address}, {two} names {other.address}.",
            hint="Choose one with --vcenter HOST or VGPUCTL_VCENTER.",
        )
    return source.address


def _usable_sources(all_sources: list[VcenterSource], chosen: Address) -> list[Source]:
    # Decision 0008: trust belongs to a vCenter, too. A lab's GOVC_INSECURE must not reach production.
    fitting = [source for source in all_sources if source.address in {None, chosen}]
    families = [source for source in fitting if source.family]
    # Prefer a family that names this vCenter to one that names none; then one with a password.
    best = max(families, key=lambda p: (p.address is not None, PASSWORD in p.settings), default=None)
    return [source.settings for source in fitting if not source.family or source is best]


def _password(usable: list[Source], chosen: Address, user: SettingValue) -> Password | None:
    for source in usable:
        found = next((source[name] for name in SECRETS if name in source), None)
        # Decision 0008: a password is used only beside its user.
        if found is None or source.get("vcenter-user", user).value != user.value:
            continue
        if PASSWORD in source:
            return Password(found.value, found.origin)
        if "password-file" in source:
            path = Path(found.value).expanduser()
            # Kubernetes: a Secret that is mounted as a file is renewed there.
            return Password.read(partial(passwords.from_file, path), f"the file {path}")
        if is_true(found):
            return Password.read(partial(passwords.from_keyring, str(chosen), user.value), "the keyring")
    return None


def _trust(usable: list[Source], chosen: Address) -> Trust:
    """Return what to trust. A pin from any source is always checked; `insecure` only skips the CA."""
    pin = first_setting(usable, "thumbprint") or known_pin(first_setting(usable, "known-hosts"), chosen)
    digits = parse_thumbprint(pin.value) if pin else None
    if pin and not digits:
        raise UsageError(
            f"{pin.origin} is not a thumbprint: 64 hex digits (SHA-256), or 40 (SHA-1), with or without colons."
        )
    files = first_setting(usable, "ca-file")
    return Trust(
        ca_file=os.pathsep.join(str(Path(p).expanduser()) for p in files.value.split(os.pathsep)) if files else None,
        # Decision 0008: a pin is checked instead of a CA, so `insecure` does not undo it.
        verify=not is_true(first_setting(usable, "insecure")),
        pin=digits,
        pinned_by=pin.origin if pin else "",
    )


def _how_to_set(what: str) -> str:
    return {
        "vcenter": "Give --vcenter HOST, set VGPUCTL_VCENTER, GOVC_URL, VSPHERE_SERVER or VMWARE_HOST, or write "
        "vcenter: into ~/.config/vgpuctl/config.yaml. To try vgpuctl without a vCenter: vgpuctl sim up",
        "user": "Give --vcenter-user, set VGPUCTL_VCENTER_USER, GOVC_USERNAME, VSPHERE_USER or VMWARE_USER, or write "
        "vcenter-user: into the settings file.",
        PASSWORD: "Set VGPUCTL_PASSWORD, GOVC_PASSWORD, VSPHERE_PASSWORD or VMWARE_PASSWORD, or give "
        "--password-file FILE or --keyring (VGPUCTL_PASSWORD_FILE, VGPUCTL_KEYRING, or in the settings file).",
    }[what]


def _unused_passwords(sources: list[VcenterSource]) -> str:
    """Name passwords that belong to another vCenter or user: people wonder why they were not used."""
    unused = [source.settings[name].origin for source in sources for name in SECRETS if name in source.settings]
    if not unused:
        return ""
    return f"\nNot used, because it belongs to another vCenter or user: {', '.join(dict.fromkeys(unused))}."
