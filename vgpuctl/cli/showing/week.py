"""The coming shifts as rows of days: half an hour a cell, for terminals and for the drawn picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from rich.text import Text

from vgpuctl.basics.durations import format_duration
from vgpuctl.model.starts import ONE_DAY
from vgpuctl.model.timetable import Timetable
from vgpuctl.reporting.coming import ClockChange, Span, clock_changes

CELL = timedelta(minutes=30)
CELLS = 48
GLYPHS = "█▒░▓▞▚▤▥"
STYLES = ("yellow", "blue", "green", "magenta", "cyan", "red", "white", "bright_black")
LABEL = 16


@dataclass(frozen=True, slots=True)
class DayRow:
    """One day: the shift of each half hour ("" for none), and what is special about the day."""

    day: date
    cells: tuple[str, ...]
    notes: tuple[str, ...]


def day_rows(timetable: Timetable, spans: Sequence[Span], zone: str, since: datetime, days: int) -> list[DayRow]:
    here = ZoneInfo(zone)
    first = since.astimezone(here).date()
    changes = clock_changes(zone, _midnight(first, here), _midnight(first + ONE_DAY * days, here))
    notes = {change.at.date(): [clock_note(change)] for change in changes}
    rows = []
    for day in (first + ONE_DAY * number for number in range(days)):
        stays = (staying for staying in timetable.staying if staying.covering(day))
        told = (*notes.get(day, ()), *(f"stays in {staying.shift}" for staying in islice(stays, 1)))
        cells = tuple(_shift_at(spans, _midnight(day, here) + CELL * number + CELL / 2) for number in range(CELLS))
        rows.append(DayRow(day, cells, told))
    return rows


def clock_note(change: ClockChange) -> str:
    before = change.at - change.by if change.by > timedelta() else change.at
    after = change.at if change.by > timedelta() else change.at - change.by
    what = "are skipped" if change.by > timedelta() else "come twice"
    return f"{before:%H:%M}–{after:%H:%M} {what}"


def early_note(span: Span) -> str:
    if span.early == "auto":
        return "begins early enough to be ready"
    return f"begins {format_duration(span.early.total_seconds())} early" if span.early else ""


def _shift_at(spans: Sequence[Span], moment: datetime) -> str:
    return next((s.shift for s in spans if s.start <= moment and (s.end is None or moment < s.end)), "")


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone)


def glyphs(timetable: Timetable) -> dict[str, tuple[str, str]]:
    """Return the glyph and the colour of each shift, in the order of the file."""
    return {
        name: (GLYPHS[number % len(GLYPHS)], STYLES[number % len(STYLES)])
        for number, name in enumerate(timetable.shifts)
    }


def picture(rows: Sequence[DayRow], zone: str, marks: dict[str, tuple[str, str]]) -> Iterator[Text]:
    """Yield the lines of the picture: the hours, then a line a day."""
    yield Text(f"{zone:<{LABEL}}"[:LABEL] + "".join(f"{hour:02}    " for hour in range(0, 24, 3)) + "24", "dim")
    for row in rows:
        line = Text(f"{row.day:%a %d %b}".ljust(LABEL))
        for cell in row.cells:
            glyph, style = marks.get(cell, (" ", ""))
            line.append(glyph, style)
        yield line.append(f"  {'; '.join(row.notes)}" if row.notes else "", "dim")


def in_words(span: Span, now: datetime) -> str:
    """Return when a span comes: `now`, or how long until then."""
    if span.start <= now:
        return "now" if span.end is None or now < span.end else ""
    minutes = max(1, round((span.start - now).total_seconds() / 60))
    return f"in {_long(minutes)}"


def _long(minutes: int) -> str:
    days, rest = divmod(minutes, 1440)
    if days < 2:
        return format_duration(minutes * 60)
    return f"{days} days" if rest < 60 else f"{days} days {rest // 60} h"
