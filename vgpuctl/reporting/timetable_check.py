"""Faults of timetables that show only when their starts are looked at together. No server is asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import combinations, islice
from zoneinfo import ZoneInfo

from vgpuctl.model.calendar import Days, StayingDays
from vgpuctl.model.starts import Start, Starts
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.reporting.profiles_check import Finding, Severity
from vgpuctl.reporting.timing_check import check_timing

#: How far ahead starts are compared. cronsim itself refuses lines that no date fits, such as 30 February.
AHEAD = timedelta(days=366)
#: A start every minute for two weeks. What recurs later than this recurs earlier, too.
MOST_STARTS = 20_000


def check_timetable(timetable: Timetable, now: datetime) -> Iterator[Finding]:
    """Yield what is wrong with a timetable, as seen from now."""
    local = now.astimezone(ZoneInfo(timetable.timezone))
    yield from _equal_starts(timetable, local)
    yield from _contradicting_dates(timetable)
    if timetable.season.last and local.date() > timetable.season.last:
        hint = "Remove the timetable, or set a later date."
        last, any_shift = timetable.season.last, next(iter(timetable.shifts.values()))
        yield _warning("is-over", any_shift, f"{timetable.name} has not counted since {last}", hint)
        return
    ahead = list(_ahead(timetable, local))
    yield from check_timing(ahead)
    reached = {start.shift.name for start in ahead}
    for shift in timetable.shifts.values():
        if shift.name not in reached:
            why = f"{shift.name} never begins within a year from now"
            yield _warning("never-reached", shift, why, "Correct its starts or its dates, or remove it.")


def _ahead(timetable: Timetable, local: datetime) -> Iterator[Start]:
    starts = Starts(timetable)
    # The shift in force is reached, too, although it began earlier.
    current = starts.in_force(local)
    if current is not None:
        yield current
    for start in islice(starts.after(local), MOST_STARTS):
        if start.at - local > AHEAD:
            return
        yield start


def _equal_starts(timetable: Timetable, local: datetime) -> Iterator[Finding]:
    """Yield each pair of shifts that begin at one moment: which of them counts is no more than their order."""
    moments = {shift.name: _moments(timetable, shift, local) for shift in timetable.shifts.values()}
    for one, two in combinations(timetable.shifts.values(), 2):
        if both := moments[one.name] & moments[two.name]:
            first = min(both).strftime("%a %d %b %Y %H:%M")
            yield _error(
                "equal-starts",
                two,
                f"{two.name} starts at the same moment as {one.name}, next on {first}; so only {one.name} begins",
                "Let one of them start earlier or later.",
            )


def _moments(timetable: Timetable, shift: Shift, local: datetime) -> set[datetime]:
    alone = Timetable(name=timetable.name, timezone=timetable.timezone, shifts={shift.name: shift})
    return {start.at for start in _ahead(alone, local) if start.at > local}


def _contradicting_dates(timetable: Timetable) -> Iterator[Finding]:
    for one, two in combinations(timetable.staying, 2):
        if one.shift != two.shift and (common := _common(one, two)):
            yield _error(
                "contradicting-dates",
                timetable.shifts[two.shift],
                f"{common} stays in {one.shift} and in {two.shift}; only {one.shift} counts",
                "Take the dates out of one entry of `except`.",
            )


def _common(one: StayingDays, two: StayingDays) -> Days | None:
    """Return the first dates that both name."""
    for mine in one.days:
        for theirs in two.days:
            first = max(day for day in (mine.first, theirs.first) if day)
            last = min(day for day in (mine.last, theirs.last) if day)
            if first <= last:
                return Days(first, last)
    return None


def _error(kind: str, shift: Shift, what: str, hint: str) -> Finding:
    return Finding(severity=Severity.ERROR, kind=kind, what=what, hint=hint, where=shift.where)


def _warning(kind: str, shift: Shift, what: str, hint: str) -> Finding:
    return Finding(severity=Severity.WARNING, kind=kind, what=what, hint=hint, where=shift.where)
