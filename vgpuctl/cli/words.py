"""Steps, times and counts in words for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from vgpuctl.model.bounded import UnreadableError, time
from vgpuctl.model.names import fold

DAY_S = 86400


def seconds(value: float) -> str:
    """Return a duration: `41 s`, `2 min 8 s`, `3 h 12 min`."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


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


def some(names: Iterable[str], most: int = 60) -> str:
    """Return names shortened to ranges. Beyond `most` characters the rest is counted: `worker-[1-40] node-7 … (57)`."""
    names = list(names)
    patterns = fold(names)
    shown = patterns[:1]
    for pattern in patterns[1:]:
        if len(" ".join([*shown, pattern])) > most:
            return f"{' '.join(shown)} … ({len(names)})"
        shown.append(pattern)
    return " ".join(shown)
