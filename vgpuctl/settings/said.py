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

_YES, _NO = {"1", "true", "t", "yes", "y", "on"}, {"0", "false", "f", "no", "n", "off"}


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A value and its source. The value may be a secret; only the source is ever printed."""

    value: str = field(repr=False)
    by: str


Source = Mapping[str, SettingValue]


def variable(name: str) -> str:
    return f"VGPUCTL_{name.upper().replace('-', '_')}"


def first(sources: Iterable[Source], name: str) -> SettingValue | None:
    return next((source[name] for source in sources if name in source), None)


def yes(said: SettingValue | None) -> bool:
    if said is None:
        return False
    word = said.value.lower()
    if word not in _YES | _NO:
        raise UsageError(f"{said.by} must be true or false.")
    return word in _YES


def seconds(said: SettingValue | None, default: float, most: float = math.inf) -> float:
    value = _number(said, default, "seconds")
    if said is not None and value > most:
        raise UsageError(f"{said.by} must be at most {most:.0f} seconds.")
    return value


def mib(said: SettingValue | None, default: float) -> float:
    return _number(said, default, "MiB")


def _number(said: SettingValue | None, default: float, unit: str) -> float:
    if said is None:
        return default
    try:
        value = float(said.value)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise UsageError(f"{said.by} must be a number of {unit}.")
    return value
