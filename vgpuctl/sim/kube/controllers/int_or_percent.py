"""IntOrString limits of budgets and rollouts: a number, or a percentage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.kube.api.kinds import Kind
from vgpuctl.sim.kube.objects import Object, at

NOT_NEGATIVE = "must be greater than or equal to 0"
_NOT_A_PERCENTAGE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
# The real server allows any number of digits. Python refuses to convert thousands, and nine are enough.
_PERCENTAGE = re.compile(r"[0-9]{1,9}%")
_ROLLING, _UPDATING = "spec.strategy.rollingUpdate", "spec.updateStrategy.rollingUpdate"
_LIMITS = {
    "poddisruptionbudgets": ("spec.minAvailable", "spec.maxUnavailable"),
    "deployments": (f"{_ROLLING}.maxUnavailable", f"{_ROLLING}.maxSurge"),
    "daemonsets": (f"{_UPDATING}.maxUnavailable", f"{_UPDATING}.maxSurge"),
    "statefulsets": (f"{_UPDATING}.maxUnavailable",),
}
#: Measured: kube-apiserver 1.36 names these two in its refusal.
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_INVALID = "FieldValueInvalid"


def amount_of(value: int | str | None, whole: int, *, up: bool) -> int:
    """Return `25%` of a whole, or the number itself."""
    if value is None or isinstance(value, int):
        return value or 0
    parts = int(value.rstrip("%")) * whole
    return -(-parts // 100) if up else parts // 100


def causes(kind: Kind, item: Object) -> Iterator[tuple[str, str, str]]:
    """Return field, reason and message of each invalid limit. Only a Deployment's maxSurge may exceed 100%."""
    for path in _LIMITS.get(kind.plural, ()):
        limit = at(item, path)
        # Measured: kube-apiserver 1.36 takes a Deployment's maxSurge of 101 %, and refuses a DaemonSet's.
        if limit is not None and (message := _reason_against(limit, more=path == f"{_ROLLING}.maxSurge")):
            yield path, _INVALID, f"Invalid value: {json.dumps(limit)}: {message}"
    if kind.plural == "poddisruptionbudgets":
        yield from _budget_causes(item.get("spec") or {})


def _reason_against(limit: Any, *, more: bool) -> str:
    if isinstance(limit, int):
        return NOT_NEGATIVE if limit < 0 else ""
    if not _PERCENTAGE.fullmatch(limit):
        return _NOT_A_PERCENTAGE
    return "" if more or amount_of(limit, 100, up=True) <= 100 else "must not be greater than 100%"


def _budget_causes(spec: Object) -> Iterator[tuple[str, str, str]]:
    least, most, policy = (spec.get(name) for name in ("minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy"))
    # Measured: kube-apiserver 1.36 refuses both limits together.
    if least is not None and most is not None:
        names = {"MinAvailable": least, "Selector": spec.get("selector"), "MaxUnavailable": most}
        encoded = json.dumps(names | {"UnhealthyPodEvictionPolicy": policy}, separators=(",", ":"))
        yield "spec", _INVALID, f"Invalid value: {encoded}: minAvailable and maxUnavailable cannot be both set"
    if policy is not None and policy not in _POLICIES:
        known = ", ".join(f'"{each}"' for each in _POLICIES)
        yield (
            "spec.unhealthyPodEvictionPolicy",
            "FieldValueNotSupported",
            f"Unsupported value: {json.dumps(policy)}: supported values: {known}",
        )
