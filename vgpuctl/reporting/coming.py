"""What comes when: the spans of the shifts, and the hours that a change of the clocks skips or doubles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from vgpuctl.model.orders import Override
from vgpuctl.model.starts import ONE_DAY, Start, Starts
from vgpuctl.model.timetable import Timetable


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time in which one shift is in force. `why`: what decides, if it is no cron line.

    `early`: how long before `start` its switch begins; `auto`: its history decides, which only the cluster has.
    """

    timetable: str
    shift: str
    start: datetime
    end: datetime | None
    why: str = ""
    early: timedelta | Literal["auto"] | None = None

    @property
    def begins(self) -> datetime | None:
        """Return when the switch begins if nothing holds it back; None if only the history can say."""
        if self.early == "auto":
            return None
        # Local arithmetic would be wrong by an hour where the clocks change.
        return (self.start.astimezone(UTC) - (self.early or timedelta())).astimezone(self.start.tzinfo)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of a zone's clocks. `by`: how far they go forward; below zero: back."""

    at: datetime
    by: timedelta


def spans(timetable: Timetable, since: datetime, until: datetime) -> Iterator[Span]:
    """Yield the spans between two moments, the one in force at `since` first. The last may end later, or never."""
    starts = Starts(timetable)
    current = starts.in_force(since)
    for start in starts.after(since):
        if start.at >= until:
            break
        if current is not None and start.shift is current.shift:
            # The dates that make a shift last are as good a reason as the dates that began it.
            current = replace(current, stays=current.stays or start.stays)
            continue
        if current is not None:
            yield _span(timetable, current, start.at)
        current = start
    if current is not None:
        change = starts.next_change(max(current.at, until - timedelta(microseconds=1)))
        yield _span(timetable, current, change.at if change else _season_end(timetable))


def with_override(found: Iterable[Span], order: Override, since: datetime, until: datetime) -> list[Span]:
    """Return the spans between two moments with an override among them. Its end counts as a start."""
    why = f"override by {order.who}{f': {order.reason}' if order.reason else ''}"
    pieces = [Span(timetable=order.timetable, shift=order.shift, start=order.since, end=order.until, why=why)]
    for span in found:
        if span.start < order.since:
            pieces.append(replace(span, end=min(span.end or order.since, order.since)))
        if order.until and (span.end is None or span.end > order.until):
            pieces.append(replace(span, start=max(span.start, order.until)))
    seen = (piece for piece in pieces if piece.start < until and (piece.end is None or piece.end > since))
    return sorted(seen, key=lambda piece: piece.start)


def clock_changes(zone: str, since: datetime, until: datetime) -> Iterator[ClockChange]:
    """Yield the changes of a zone's clocks between two moments, each at its exact minute."""
    here = ZoneInfo(zone)
    day = since.astimezone(UTC)
    while day < until:
        after = min(day + ONE_DAY, until.astimezone(UTC))
        if _offset(day, here) != _offset(after, here):
            yield _change(day, after, here)
        day = after


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> ClockChange:
    """Return the change between two moments, found by halving the time between them."""
    old = _offset(before, zone)
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        before, after = (middle, after) if _offset(middle, zone) == old else (before, middle)
    at = (before + timedelta(seconds=1)).replace(microsecond=0)
    return ClockChange(at.astimezone(zone), _offset(after, zone) - old)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _season_end(timetable: Timetable) -> datetime | None:
    """Return the midnight after the timetable's last date."""
    last = timetable.season.last
    zone = ZoneInfo(timetable.timezone)
    return datetime.combine(last + ONE_DAY, datetime.min.time(), zone) if last else None


def _span(timetable: Timetable, start: Start, end: datetime | None) -> Span:
    why = f"{start.stays} stays in {start.shift.name}" if start.stays else ""
    shift = start.shift
    return Span(timetable=timetable.name, shift=shift.name, start=start.at, end=end, why=why, early=shift.timing.early)
