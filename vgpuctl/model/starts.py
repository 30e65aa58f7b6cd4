"""The starts of a timetable's shifts, in order of time: what its cron lines say, less and more what its dates say.

Each start on an excepted date is a start of that date's shift. A date without any start begins with it at midnight. So
the night before a holiday ends when it always ends, and the day after begins when it always begins.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from cronsim import CronSim

from vgpuctl.model.calendar import Days

if TYPE_CHECKING:
    from vgpuctl.model.timetable import Shift, Timetable

ONE_DAY = timedelta(days=1)
#: A shift that never changes has no next change. So many starts are looked at before that is said.
MOST_LOOKED_AT = 2000


@dataclass(frozen=True, slots=True)
class Start:
    """A moment at which a shift begins. `stays`: the excepted dates that made it this shift."""

    shift: Shift
    at: datetime
    stays: Days | None = None


class Starts:
    """The starts of one timetable, forward or backward from a moment."""

    def __init__(self, timetable: Timetable) -> None:
        self._timetable = timetable
        self._zone = ZoneInfo(timetable.timezone)

    def in_force(self, now: datetime) -> Start | None:
        """Return the latest start at or before `now`; None outside the timetable's dates, or before its first start."""
        if now.astimezone(self._zone).date() not in self._timetable.season:
            return None
        # The latest start before now decides, so a missed start is made up for and windows may cross midnight.
        return next(self.before(now), None)

    def after(self, now: datetime) -> Iterator[Start]:
        """Yield the starts after `now`, the earliest first; where two begin at once, the one that is written first."""
        local = now.astimezone(self._zone)
        lines = (self._line(shift, line, local) for shift in self._timetable.shifts.values() for line in shift.starts)
        return self._at_different_moments(heapq.merge(*lines, self._midnights(local), key=_moment))

    def before(self, now: datetime) -> Iterator[Start]:
        """Yield the starts at or before `now`, the latest first."""
        local = now.astimezone(self._zone)
        shifts = self._timetable.shifts.values()
        lines = (self._line(shift, line, local, past=True) for shift in shifts for line in shift.starts)
        merged = heapq.merge(*lines, self._midnights(local, past=True), key=_moment, reverse=True)
        return self._at_different_moments(merged)

    def next_change(self, now: datetime) -> Start | None:
        """Return the next start of another shift than the one in force."""
        current = self.in_force(now)
        return next((start for start in self._coming(now) if not current or start.shift is not current.shift), None)

    def next_of(self, shift: str, now: datetime) -> datetime | None:
        """Return the next start of this one shift."""
        return next((start.at for start in self._coming(now) if start.shift.name == shift), None)

    def _coming(self, now: datetime) -> Iterator[Start]:
        return islice(self.after(now), MOST_LOOKED_AT + 1)

    def _at_different_moments(self, starts: Iterator[Start]) -> Iterator[Start]:
        last = None
        for start in starts:
            if last is None or _moment(start) != last:
                yield start
            last = _moment(start)

    def _line(self, shift: Shift, line: str, local: datetime, *, past: bool = False) -> Iterator[Start]:
        """Yield the starts of one cron line that count."""
        season = (self._timetable.season, shift.season)
        for at in _ticks(line, self._clamped(local, season, past=past), past=past):
            day = at.date()
            if any(_is_over(day, days, past=past) for days in season):
                return
            if all(day in days for days in season) and not any(day in days for days in shift.never_on):
                yield self._start(shift, at)

    def _start(self, shift: Shift, at: datetime) -> Start:
        for staying in self._timetable.staying:
            if days := staying.covering(at.date()):
                return Start(self._timetable.shifts[staying.shift], at, days)
        return Start(shift, at)

    def _clamped(self, local: datetime, seasons: tuple[Days, ...], *, past: bool) -> datetime:
        """Return where to begin: not years before a season, nor after it."""
        if past:
            ends = (self._midnight(days.last + ONE_DAY) for days in seasons if days.last)
            return min((local, *ends), key=datetime.timestamp)
        # A start at midnight counts, so a moment before it is taken.
        begins = (self._midnight(days.first) - timedelta(minutes=1) for days in seasons if days.first)
        return max((local, *begins), key=datetime.timestamp)

    def _midnights(self, local: datetime, *, past: bool = False) -> Iterator[Start]:
        """Yield the midnights of excepted dates on which no shift starts."""
        dates = sorted(self._excepted(), reverse=past)
        for day in dates:
            at = self._midnight(day)
            if (at <= local) is past and day in self._timetable.season and not self._has_start(day):
                yield self._start(next(iter(self._timetable.shifts.values())), at)

    def _excepted(self) -> set[date]:
        ranges = (days for staying in self._timetable.staying for days in staying.days)
        return {day for days in ranges for day in _dates(days)}

    def _has_start(self, day: date) -> bool:
        before = self._midnight(day) - timedelta(minutes=1)
        for shift in self._timetable.shifts.values():
            counts = day in shift.season and not any(day in days for days in shift.never_on)
            for line in shift.starts if counts else ():
                if (at := next(_ticks(line, before), None)) and at.date() == day:
                    return True
        return False

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self._zone)


def _ticks(line: str, local: datetime, *, past: bool = False) -> Iterator[datetime]:
    # Standard cron, by cronsim: APScheduler reads `0 8 * * 1-5` as Tuesday to Saturday (0 is Monday there).
    # cronsim treats both changes of the clock as Debian's cron does.
    # With a microsecond to go back, cronsim counts this very second too.
    return CronSim(line, local.replace(microsecond=1), reverse=True) if past else CronSim(line, local)


def _dates(days: Days) -> Iterator[date]:
    day = days.first
    while day is not None and days.last is not None and day <= days.last:
        yield day
        day += ONE_DAY


def _is_over(day: date, days: Days, *, past: bool) -> bool:
    if past:
        return days.first is not None and day < days.first
    return days.last is not None and days.last < day


def _moment(start: Start) -> float:
    return start.at.timestamp()
