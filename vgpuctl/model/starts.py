"""The starts of a timetable's shifts, in order of time: what its cron lines say, less and more what its dates say.

Each start on an excepted date is a start of that date's shift. A date without any start begins with it at midnight. So
the night before a holiday ends when it always ends, and the day after begins when it always begins.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from vgpuctl.model.calendar import Days
from vgpuctl.model.ticks import minute_before, ticks

if TYPE_CHECKING:
    from vgpuctl.model.timetable import Shift, Timetable

ONE_DAY = timedelta(days=1)
#: So many starts of a shift are looked at that another shift, written earlier, takes at the same moments. `schedule
#: check` reports them as an error. A start that is free is found however rare it is.
MOST_TAKEN = 500


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
        shifts = self._timetable.shifts
        return self._next_of({name: shifts[name] for name in shifts if not current or name != current.shift.name}, now)

    def next_of(self, shift: str, now: datetime) -> datetime | None:
        """Return the next start of this one shift."""
        mine = self._timetable.shifts.get(shift)
        start = self._next_of({shift: mine}, now) if mine else None
        return start.at if start else None

    def _next_of(self, wanted: Mapping[str, Shift], now: datetime) -> Start | None:
        """Return the next start of any of these shifts.

        Only moments that may be theirs are looked at: the other shifts may start every minute for a year.
        """
        local = now.astimezone(self._zone)
        for moment in islice(self._moments_of(wanted, local), MOST_TAKEN):
            start = next(self.after(max(local, minute_before(moment), key=datetime.timestamp)), None)
            if start and start.shift.name in wanted:
                return start
        return None

    def _moments_of(self, wanted: Mapping[str, Shift], local: datetime) -> Iterator[datetime]:
        """Yield, in order, the moments at which these shifts may start: by cron lines or by dates that stay in them."""
        excepted = tuple(days for staying in self._timetable.staying for days in staying.days)
        plain = (replace(shift, never_on=(*shift.never_on, *excepted)) for shift in wanted.values())
        lines = [self._line(shift, line, local) for shift in plain for line in shift.starts]
        own = (start.at for start in heapq.merge(*lines, key=_moment))
        return heapq.merge(own, self._staying_in(wanted, local), key=datetime.timestamp)

    def _staying_in(self, wanted: Collection[str], local: datetime) -> Iterator[datetime]:
        """Yield the midnights of the dates that stay in these shifts, beginning with today's."""
        for day in sorted(self._excepted()):
            stays = self._stays(day) if day >= local.date() and day in self._timetable.season else None
            if stays and stays[0].name in wanted:
                yield self._midnight(day)

    def _at_different_moments(self, starts: Iterator[Start]) -> Iterator[Start]:
        last = None
        for start in starts:
            if last is None or _moment(start) != last:
                yield start
            last = _moment(start)

    def _line(self, shift: Shift, line: str, local: datetime, *, past: bool = False) -> Iterator[Start]:
        """Yield the starts of one cron line that count."""
        season = (self._timetable.season, shift.season)
        coming = ticks(line, self._clamped(local, season, past=past), past=past)
        while at := next(coming, None):
            day = at.date()
            if any(_is_over(day, days, past=past) for days in season):
                return
            if left_out := next((days for days in shift.never_on if day in days), None):
                # A line that starts every minute is not walked through 400 days that are left out.
                coming = self._ticks_beyond(left_out, line, past=past)
            elif all(day in days for days in season):
                yield self._start(shift, at)

    def _ticks_beyond(self, days: Days, line: str, *, past: bool) -> Iterator[datetime]:
        """Return the line's ticks after these dates, or before them."""
        bound = days.first if past else days.last and days.last + ONE_DAY
        return ticks(line, minute_before(self._midnight(bound)), past=past) if bound else iter(())

    def _start(self, shift: Shift, at: datetime) -> Start:
        stays = self._stays(at.date())
        return Start(stays[0], at, stays[1]) if stays else Start(shift, at)

    def _stays(self, day: date) -> tuple[Shift, Days] | None:
        """Return the shift that a date stays in, and the dates that say so."""
        for staying in self._timetable.staying:
            if days := staying.covering(day):
                return self._timetable.shifts[staying.shift], days
        return None

    def _clamped(self, local: datetime, seasons: tuple[Days, ...], *, past: bool) -> datetime:
        """Return where to begin: not years before a season, nor after it."""
        if past:
            ends = (self._midnight(days.last + ONE_DAY) for days in seasons if days.last)
            return min((local, *ends), key=datetime.timestamp)
        # A start at midnight counts, so a moment before it is taken.
        begins = (minute_before(self._midnight(days.first)) for days in seasons if days.first)
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
        before = minute_before(self._midnight(day))
        for shift in self._timetable.shifts.values():
            counts = day in shift.season and not any(day in days for days in shift.never_on)
            for line in shift.starts if counts else ():
                if (at := next(ticks(line, before), None)) and at.date() == day:
                    return True
        return False

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self._zone)


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
