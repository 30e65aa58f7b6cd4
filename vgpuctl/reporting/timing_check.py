"""Durations of timetables that do not fit how long the shifts last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise

from vgpuctl.basics.durations import format_duration
from vgpuctl.model.starts import Start
from vgpuctl.model.timetable import Shift
from vgpuctl.reporting.profiles_check import Finding, Severity


def check_timing(starts: Iterable[Start]) -> Iterator[Finding]:
    """Yield what is wrong with the shifts' timing. `starts`: the one in force, and the coming ones."""
    changes = [next(same) for _, same in groupby(starts, key=lambda start: start.shift.name)]
    # The first lasts since an earlier start perhaps, and the last until a start that was not looked at.
    whole = list(pairwise(changes[1:]))
    yield from _too_early(whole)
    longest: dict[str, tuple[Shift, timedelta]] = {}
    for one, two in whole:
        _, before = longest.get(one.shift.name, (one.shift, timedelta()))
        longest[one.shift.name] = one.shift, max(before, _between(one.at, two.at))
    for shift, lasts in longest.values():
        yield from _too_long(shift, lasts)


def _too_early(whole: Sequence[tuple[Start, Start]]) -> Iterator[Finding]:
    """Yield each shift whose `early` leaves nothing of a shift before it, with the first such start."""
    found = set()
    for before, start in whole:
        shift, lasts = start.shift, _between(before.at, start.at)
        early = shift.timing.early
        if isinstance(early, timedelta) and early >= lasts and shift.name not in found:
            found.add(shift.name)
            when = f"{start.at:%a %d %b %Y %H:%M}"
            why = f"{before.shift.name} before it lasts {_shown(lasts)}, until {when}"
            what = f"{shift.name} begins {_shown(early)} early, but {why}"
            yield _finding(Severity.ERROR, "early-too-long", shift, what, "Set a shorter early, or auto.")


def _too_long(shift: Shift, lasts: timedelta) -> Iterator[Finding]:
    """Yield what a shift can never meet. `lasts`: how long it lasts at most."""
    timing, but = shift.timing, f"but {shift.name} lasts {_shown(lasts)} at most"
    if timing.min_run and timing.min_run > lasts:
        what = f"min_run is {_shown(timing.min_run)}, {but}; so it is never begun"
        yield _finding(Severity.ERROR, "min-run-too-long", shift, what, "Set a shorter min_run.")
    if timing.skip_after and timing.skip_after >= lasts:
        what = f"skip_after is {_shown(timing.skip_after)}, {but}; so no start of it is ever skipped"
        yield _finding(Severity.WARNING, "never-skipped", shift, what, "Set a shorter skip_after, or remove it.")


def _between(one: datetime, two: datetime) -> timedelta:
    # Python subtracts two times of one zone by the clock on the wall, which is wrong where the clocks change.
    return timedelta(seconds=two.timestamp() - one.timestamp())


def _shown(duration: timedelta) -> str:
    return format_duration(duration.total_seconds())


def _finding(severity: Severity, kind: str, shift: Shift, what: str, hint: str) -> Finding:
    return Finding(severity=severity, kind=kind, what=what, hint=hint, where=shift.where)
