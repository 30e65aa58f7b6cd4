"""Moments as people write them (`18:00`, `2026-11-21 08:00`, or as in RFC 3339) and as we show them (`Sat 08:00`)."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import FIRST_YEAR, LAST_YEAR, UnreadableError

DAY_S = 86400
USUAL = "a time such as 18:00, 2026-11-21 08:00 or 2026-11-21T08:00:00Z"
_DAY_AND_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)")
_TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}")
_WITH_ZONE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ Tt][0-9:.]{5,20}(?:[Zz]|[+-][0-9]{2}:[0-9]{2})")


def parse_moment(text: str, now: datetime) -> datetime:
    """Return a moment with its zone; UnreadableError for other texts. A time of day is the next one after `now`.

    A time without a zone is of this machine's zone, as on its clocks.
    """
    if _WITH_ZONE.fullmatch(text):
        return bounded.time(text.upper(), "it")
    try:
        return _local(text, now)
    except (ValueError, OverflowError):
        raise UnreadableError(f"it is not {USUAL}") from None


def moment(when: datetime | str, now: datetime) -> str:
    """Return a local time such as `08:04`, with the day if it could be another; "" for a text that is not a time."""
    try:
        at = (bounded.time(when, "it") if isinstance(when, str) else when).astimezone()
    except UnreadableError:
        return ""
    apart = abs((at - now).total_seconds())
    if apart < DAY_S:
        return at.strftime("%H:%M")
    return at.strftime("%a %H:%M") if apart < 6 * DAY_S else f"{at.day} {at:%b %H:%M}"


def full_moment(at: datetime) -> str:
    """Return a local time with its date, `2026-11-21 08:00`: for texts that are made without a clock."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def _local(text: str, now: datetime) -> datetime:
    if _TIME.fullmatch(text):
        return _next(time_of_day.fromisoformat(text.zfill(5)), now)
    found = _DAY_AND_TIME.fullmatch(text)
    day = date.fromisoformat(found[1]) if found else date.min
    if found is None or not FIRST_YEAR < day.year < LAST_YEAR:
        raise UnreadableError
    return _here(datetime.combine(day, time_of_day.fromisoformat(found[2])))


def _next(at: time_of_day, now: datetime) -> datetime:
    """Return the next such time. Days have 23 or 25 hours when the clocks change, so the date moves, not the hours."""
    today = datetime.combine(now.astimezone().date(), at)
    moments = (_here(today + timedelta(days=days)) for days in range(3))
    return next(each for each in moments if each > now)


def _here(clock: datetime) -> datetime:
    """Return the moment at which this machine's clocks show this; the later one if the change of clocks leaves two."""
    # Measured: in the hour that is left out, Python 3.11 reads `fold=0` as an hour too early.
    return max(clock.replace(fold=fold).astimezone(UTC) for fold in (0, 1)).astimezone()
