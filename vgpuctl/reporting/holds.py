"""A hold in documents for programs."""

from __future__ import annotations

from typing import Any

from vgpuctl.model.hold import Hold


def hold_document(hold: Hold | None) -> dict[str, Any] | None:
    """Return the fields of a hold, as `status` and `hold` print them. Unknown values are None."""
    if hold is None:
        return None
    return {
        "by": hold.who or None,
        "since": hold.since or None,
        "until": hold.until.isoformat() if hold.until else None,
        "reason": hold.reason or None,
        "unreadable": hold.unreadable or None,
    }
