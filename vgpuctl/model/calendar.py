"""Dates on which a timetable counts, and dates that stay in one shift."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Days:
    """Dates from `first` to `last`, both included. None leaves that side open."""

    first: date | None = None
    last: date | None = None

    def __contains__(self, day: date) -> bool:
        return (self.first is None or self.first <= day) and (self.last is None or day <= self.last)

    def __str__(self) -> str:
        return "..".join(dict.fromkeys(day.isoformat() if day else "" for day in (self.first, self.last)))


@dataclass(frozen=True, slots=True)
class StayingDays:
    """Dates that stay in one shift, such as public holidays."""

    days: tuple[Days, ...]
    shift: str

    def covering(self, day: date) -> Days | None:
        return next((days for days in self.days if day in days), None)


ALWAYS = Days()
