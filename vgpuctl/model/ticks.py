"""The ticks of one cron line, forward or backward from a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from cronsim import CronSim

ONE_MINUTE = timedelta(minutes=1)


def ticks(line: str, local: datetime, *, past: bool = False) -> Iterator[datetime]:
    """Yield the ticks after a moment, the earliest first; or with `past`, at or before it, the latest first."""
    # Standard cron, by cronsim: APScheduler reads `0 8 * * 1-5` as Tuesday to Saturday (0 is Monday there).
    # cronsim treats both changes of the clock as Debian's cron does.
    # With a microsecond to go back, cronsim counts this very second too.
    found = CronSim(line, _begin(local).replace(microsecond=1), reverse=True) if past else CronSim(line, local)
    now = local.timestamp()
    # Python knows no date after the year 9999: cronsim raises there.
    with suppress(OverflowError):
        yield from (at for at in found if (at.timestamp() <= now) is past)


def _begin(local: datetime) -> datetime:
    """Return the local time from which to go back.

    Debian's cron: if an hour comes twice, a line ticks the first time. The second time, its latest tick may be later
    than now by the clock on the wall. cronsim begins at that clock, so it would miss the tick.
    """
    doubled = (local.replace(fold=0).utcoffset() or timedelta()) - (local.replace(fold=1).utcoffset() or timedelta())
    return local + doubled if local.fold else local


def minute_before(moment: datetime) -> datetime:
    """Return the time a minute earlier. Local arithmetic would be wrong by an hour where the clocks change."""
    return (moment.astimezone(UTC) - ONE_MINUTE).astimezone(moment.tzinfo)
