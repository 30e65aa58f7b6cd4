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
from vgpuctl.settings.deployed import Deployed, deployed
from vgpuctl.settings.file import settings_file
from vgpuctl.settings.kubernetes import ACCOUNT, kubernetes
from vgpuctl.settings.login import Sources, vcenter
from vgpuctl.settings.values import NAMES, SettingValue, Source, first_setting, read_mib, read_seconds
from vgpuctl.wire.replies import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The settings of the command line. None: not given."""

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

    def as_source(self) -> Source:
        given = {field.name.replace("_", "-"): getattr(self, field.name) for field in fields(self)}
        return {name: SettingValue(str(given[name]), f"--{name}") for name in NAMES if given[name] is not None}


def profiles_path(flags: Flags, env: Mapping[str, str] = os.environ) -> Path:
    return _path("profiles", "profiles.yaml", sources_of(flags, env))


def schedules_path(flags: Flags, env: Mapping[str, str] = os.environ) -> Path:
    return _path("schedules", "schedules", sources_of(flags, env))


def existing_schedules(flags: Flags, env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of timetables. It may be missing, but not if it was named: a typo would end all switching."""
    sources = sources_of(flags, env)
    setting = first_setting((sources.flags, sources.own, sources.file), "schedules")
    path = schedules_path(flags, env)
    if setting and not path.exists():
        raise UsageError(f"The folder of timetables, {path}, does not exist.", hint=f"It is set by {setting.origin}.")
    return path


def settings(flags: Flags, env: Mapping[str, str] = os.environ, account: Path = ACCOUNT) -> Settings:
    """Return all settings. `account`: the folder of a pod's service account."""
    sources = sources_of(flags, env)
    ours = (sources.flags, sources.own, sources.file)
    return Settings(
        vcenter=replace(vcenter(sources), bounds=_bounds(sources)),
        kubernetes=_kubernetes(sources, env, account),
        # Decision 0004: a holder is believed for a minute at most, so a longer setting would promise too much.
        lease_s=read_seconds(first_setting(ours, "lease-seconds"), 15.0, most=LONGEST_S),
        connect_s=read_seconds(first_setting(ours, "connect-seconds"), 10.0),
        blind_s=read_seconds(first_setting(ours, "blind-seconds"), BLIND_S),
    )


def deployed_settings(flags: Flags, env: Mapping[str, str] = os.environ) -> Deployed:
    """Return the settings that a deployed daemon gets."""
    return deployed(sources_of(flags, env))


def kubernetes_settings(
    flags: Flags, env: Mapping[str, str] = os.environ, account: Path = ACCOUNT
) -> KubernetesSettings:
    """Return the settings of commands that ask nothing of vCenter."""
    return _kubernetes(sources_of(flags, env), env, account)


def _kubernetes(sources: Sources, env: Mapping[str, str], account: Path) -> KubernetesSettings:
    in_order = (sources.flags, sources.own, environment.kubernetes(env), sources.file)
    return kubernetes(in_order, env, account, _bounds(sources))


def _bounds(sources: Sources) -> Bounds:
    ours, usual = (sources.flags, sources.own, sources.file), Bounds()
    return Bounds(
        reply_mib=read_mib(first_setting(ours, "reply-mib"), usual.reply_mib),
        call_s=read_seconds(first_setting(ours, "call-seconds"), usual.call_s),
    )


def sources_of(flags: Flags, env: Mapping[str, str]) -> Sources:
    """Return all sources of settings, in order."""
    return Sources(
        flags=flags.as_source(),
        own=environment.own(env),
        families=environment.families(env),
        file=settings_file(str(flags.config) if flags.config else None, env),
    )


def _path(name: str, default: str, sources: Sources) -> Path:
    setting = first_setting((sources.flags, sources.own, sources.file), name)
    return Path(setting.value if setting else default).expanduser()
