"""Every code that a refusal or an end can have, with what it means and what a person can do."""

from __future__ import annotations

from collections.abc import Iterable

from vgpuctl.model.codes import Coded, coded_kinds
from vgpuctl.planning.checks import refusals
from vgpuctl.reporting import causes

#: The modules that define codes, directly or by what they import.
SOURCES = (refusals, causes)


def table() -> dict[str, type[Coded]]:
    """Return the kinds by code, in the order of the codes."""
    # Decision 0022: the classes are the only list. `vgpuctl explain` and the documentation are made from it.
    return {kind.code: kind for kind in sorted(coded_kinds(), key=lambda kind: kind.code)}


def more_about(codes: Iterable[str]) -> str:
    """Return the line that leads to the explanations of these codes; "" if there are none."""
    found = " ".join(dict.fromkeys(filter(None, codes)))
    return f"More: vgpuctl explain {found}" if found else ""
