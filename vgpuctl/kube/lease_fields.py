"""What a Lease says, read within bounds: its holder may be another version of ours, or anybody who may write Leases."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vgpuctl.model import bounded
from vgpuctl.model.bounded import UnreadableError

#: However long another says that it needs, it is believed no longer than that.
LONGEST_LEASE_S = 60
#: As the API server bounds it in newer versions.
LONGEST_HOLDER = 253

Object = Mapping[str, Any]


def lease_seconds(spec: Object) -> float | None:
    """For how long its holder may be silent; None where it does not say so, or nothing that can be believed."""
    try:
        found = bounded.whole(spec.get("leaseDurationSeconds"), "spec.leaseDurationSeconds", least=1)
    except UnreadableError:
        return None
    return float(min(found, LONGEST_LEASE_S))


def renewed(spec: Object) -> datetime | None:
    """When its holder renewed it, by the holder's clock; None where that is no time."""
    try:
        return bounded.time(spec.get("renewTime"), "spec.renewTime")
    except UnreadableError:
        return None


def holder(spec: Object) -> str:
    """Its holder, cut where it is too long to be a name of ours; "" for nobody."""
    return bounded.cut(spec.get("holderIdentity"), LONGEST_HOLDER)
