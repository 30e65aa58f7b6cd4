"""Times of day for people, in local time."""

from __future__ import annotations

from datetime import datetime

from vgpuctl.basics.bounded import UnreadableError, time

DAY_S = 86400


def clock(moment: datetime) -> str:
    return moment.strftime("%H:%M:%S")


def moment(when: datetime | str, now: datetime) -> str:
    """Return a local time such as `08:04`, with the day if it could be another; "" for a text that is not a time."""
    try:
        at = (time(when, "it") if isinstance(when, str) else when).astimezone()
    except UnreadableError:
        return ""
    apart = abs((at - now).total_seconds())
    if apart < DAY_S:
        return at.strftime("%H:%M")
    return at.strftime("%a %H:%M") if apart < 6 * DAY_S else f"{at.day} {at:%b %H:%M}"
