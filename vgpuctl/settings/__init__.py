"""Where servers and files are, and how we log in: flags, our variables, other tools' variables, the settings file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from vgpuctl.engine.ports import BLIND_S
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.leases import LONGEST_S
from vgpuctl.model.errors import UsageError
from vgpuctl.observe.wiring import Settings
from vgpuctl.settings import environment
from vgpuctl.settings.file import settings_file
from vgpuctl.settings.kubernetes import ACCOUNT, kubernetes
from vgpuctl.settings.login import Places, vcenter
from vgpuctl.settings.said import NAMES, SettingValue, Source, first, mib, seconds
from vgpuctl.wire.replies import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the command line says; None for what it leaves open."""

    config: Path | None = None
    profiles: Path | None = None
    schedules: Path | None = None
    vcenter: str | None = None
    vcenter_user: str | None = None
    password_file: Path | None = None
    keyring: bool | None = None
    thumbprint: str | None = None
    ca_file: str | None = None
    insecure: bool | None = None
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None

    def said(self) -> Source:
        given = {field.name.replace("_", "-"): getattr(self, field.name) for field in fields(self)}
        return {name: SettingValue(str(given[name]), f"--{name}") for name in NAMES if given[name] is not None}


def profiles_path(flags: Flags, env: Mapping[str, str] = os.environ) -> Path:
    return _path("profiles", "profiles.yaml", _places(flags, env))


def schedules_path(flags: Flags, env: Mapping[str, str] = os.environ) -> Path:
    return _path("schedules", "schedules", _places(flags, env))


def existing_schedules(flags: Flags, env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of timetables. It may be missing, but not if it was named: a typo would end all switching."""
    places = _places(flags, env)
    said = first((places.flags, places.own, places.file), "schedules")
    path = schedules_path(flags, env)
    if said and not path.exists():
        raise UsageError(f"There is no {path}, where the timetables should be.", hint=f"So says {said.by}.")
    return path


def settings(flags: Flags, env: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> Settings:
    """Return all settings. `account`: the folder of a pod's service account."""
    places = _places(flags, env)
    own = (places.flags, places.own, places.file)
    return Settings(
        vcenter=replace(vcenter(places), bounds=_bounds(places)),
        kubernetes=_kubernetes(places, env, account),
        lease_s=seconds(first(own, "lease-seconds"), 15.0, most=LONGEST_S),
        connect_s=seconds(first(own, "connect-seconds"), 10.0),
        blind_s=seconds(first(own, "blind-seconds"), BLIND_S),
    )


def kubernetes_settings(
    flags: Flags, env: Mapping[str, str] = os.environ, account: Path = ACCOUNT
) -> KubernetesSettings:
    """Return the settings of commands that ask nothing of vCenter."""
    return _kubernetes(_places(flags, env), env, account)


def _kubernetes(places: Places, env: Mapping[str, str], account: Path) -> KubernetesSettings:
    sources = (places.flags, places.own, environment.kubernetes(env), places.file)
    return kubernetes(sources, env, account, _bounds(places))


def _bounds(places: Places) -> Bounds:
    own, usual = (places.flags, places.own, places.file), Bounds()
    return Bounds(
        reply_mib=mib(first(own, "reply-mib"), usual.reply_mib),
        call_s=seconds(first(own, "call-seconds"), usual.call_s),
    )


def _places(flags: Flags, env: Mapping[str, str]) -> Places:
    return Places(
        flags=flags.said(),
        own=environment.own(env),
        families=environment.families(env),
        file=settings_file(str(flags.config) if flags.config else None, env),
    )


def _path(name: str, default: str, places: Places) -> Path:
    said = first((places.flags, places.own, places.file), name)
    return Path(said.value if said else default).expanduser()
