"""Where the servers and files are: from flags, then our own environment, then what people already have for govc."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from vgpuctl.kube.client import KubernetesSettings
from vgpuctl.model.errors import UsageError
from vgpuctl.vsphere.session import VcenterSettings
from vgpuctl.wiring import Settings

_YES = {"1", "true", "t", "yes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the command line said; None where it said nothing."""

    profiles: Path | None = None
    schedules: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


def profiles_path(flags: Flags, env: Mapping[str, str] = os.environ) -> Path:
    return flags.profiles or Path(env.get("VGPUCTL_PROFILES") or "profiles.yaml")


def schedules_path(flags: Flags, env: Mapping[str, str] = os.environ) -> Path:
    return flags.schedules or Path(env.get("VGPUCTL_SCHEDULES") or "schedules")


def settings(flags: Flags, env: Mapping[str, str] = os.environ) -> Settings:
    return Settings(
        vcenter=_vcenter(env),
        kubernetes=KubernetesSettings(
            kubeconfig=flags.kubeconfig,
            context=flags.context,
            namespace=flags.namespace or env.get("VGPUCTL_NAMESPACE") or KubernetesSettings().namespace,
        ),
        lease_s=_seconds(env, "VGPUCTL_LEASE_SECONDS", 15.0),
        connect_s=_seconds(env, "VGPUCTL_CONNECT_SECONDS", 10.0),
    )


def _vcenter(env: Mapping[str, str]) -> VcenterSettings:
    raw = env.get("GOVC_URL")
    if not raw:
        raise UsageError(
            "No vCenter is named.",
            hint="Set GOVC_URL, GOVC_USERNAME and GOVC_PASSWORD as for govc, or try it on simulators: vgpuctl sim up",
        )
    url = urlsplit(raw if "://" in raw else f"https://{raw}")
    if url.scheme != "https" or not url.hostname:
        raise UsageError("GOVC_URL must be a host or an https URL.")
    user = env.get("GOVC_USERNAME") or unquote(url.username or "")
    password = env.get("GOVC_PASSWORD") or unquote(url.password or "")
    if not user or not password:
        raise UsageError("No user or password for vCenter.", hint="Set GOVC_USERNAME and GOVC_PASSWORD.")
    return VcenterSettings(
        host=url.hostname,
        port=url.port or 443,
        path=url.path.rstrip("/") or "/sdk",
        user=user,
        password=password,
        ca_file=env.get("GOVC_TLS_CA_CERTS") or None,
        verify=env.get("GOVC_INSECURE", "").lower() not in _YES,
    )


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(env.get(name) or default)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise UsageError(f"{name} must be a number of seconds.")
    return value
