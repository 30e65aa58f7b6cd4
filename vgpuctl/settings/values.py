"""One setting, several sources: the flag, our variable, another tool's variable, the settings file.

The flag, our variable and the file share one name: `--password-file`, `VGPUCTL_PASSWORD_FILE`, `password-file:`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from vgpuctl.model.errors import UsageError

#: The settings that flags, our variables and the file know.
NAMES = (
    "vcenter",
    "vcenter-user",
    "password-file",
    "keyring",
    "thumbprint",
    "ca-file",
    "insecure",
    "kubeconfig",
    "context",
    "namespace",
    "profiles",
    "schedules",
)
#: Settings without a flag: our variables and the file only.
TIMES = ("lease-seconds", "connect-seconds", "call-seconds", "blind-seconds")
SIZES = ("reply-mib",)
#: Flags of the daemon alone.
LISTENING = ("listen", "listen-cert", "listen-key", "listen-token", "listen-openly")

#: The words of Go's ParseBool, which govc and Terraform use, and of Ansible.
_YES, _NO = {"1", "true", "t", "yes", "y", "on"}, {"0", "false", "f", "no", "n", "off"}


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A value and its source. The value may be a secret; only the source is ever printed."""

    value: str = field(repr=False)
    origin: str


Source = Mapping[str, SettingValue]


def variable(name: str) -> str:
    return f"VGPUCTL_{name.upper().replace('-', '_')}"


def first_setting(sources: Iterable[Source], name: str) -> SettingValue | None:
    return next((source[name] for source in sources if name in source), None)


def is_true(setting: SettingValue | None) -> bool:
    if setting is None:
        return False
    word = setting.value.lower()
    if word not in _YES | _NO:
        raise UsageError(f"{setting.origin} must be true or false.")
    return word in _YES


def read_seconds(setting: SettingValue | None, default: float, most: float = math.inf) -> float:
    value = _number(setting, default, "seconds")
    if setting is not None and value > most:
        raise UsageError(f"{setting.origin} must be at most {most:.0f} seconds.")
    return value


def read_mib(setting: SettingValue | None, default: float) -> float:
    return _number(setting, default, "MiB")


def _number(setting: SettingValue | None, default: float, unit: str) -> float:
    if setting is None:
        return default
    try:
        value = float(setting.value)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise UsageError(f"{setting.origin} must be a number of {unit}.")
    return value
