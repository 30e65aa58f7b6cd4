"""`except`, `from` and `until`: dates in timetables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Any

from vgpuctl.basics.bounded import FIRST_YEAR, LAST_YEAR
from vgpuctl.files.reader import FileReader
from vgpuctl.model.calendar import Days, StayingDays

KEYS = ("except", "from", "until")
#: One range lasts a year and a bit at most: each of its dates is looked at.
MOST_DAYS, MOST_ENTRIES = 400, 100
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_USUAL = "a date such as 2026-12-24, or a range such as 2026-12-24..2027-01-01"


def parse_season(reader: FileReader, entries: Mapping[str, Any], key: str = "") -> Days:
    """Return the dates from `from` to `until`."""
    first, last = (_date_of(reader, entries.get(name), f"{key}{name}") for name in ("from", "until"))
    if first and last and last < first:
        reader.add_fault(f"{key}until", f"is before {first}")
        return Days()
    return Days(first, last)


def parse_staying(reader: FileReader, value: Any, shifts: Collection[str]) -> tuple[StayingDays, ...]:
    """Return the dates that stay in one shift."""
    found = []
    for number, entry in enumerate(_list(reader, value, "except")):
        key = f"except[{number}]"
        entries = reader.read_mapping(entry, key)
        reader.check_keys(entries, ("dates", "shift"), f"{key}.")
        shift = entries.get("shift")
        if not isinstance(shift, str):
            reader.add_fault(f"{key}.shift", "must be the shift that these dates stay in")
        elif shift not in shifts:
            reader.add_fault(f"{key}.shift", f"there is no shift {shift}{reader.suggestion(shift, shifts)}")
        elif entries.get("dates") is None:
            reader.add_fault(key, f"needs dates: {_USUAL}")
        elif days := parse_days(reader, entries["dates"], f"{key}.dates"):
            found.append(StayingDays(days, shift))
    return tuple(found)


def parse_days(reader: FileReader, value: Any, key: str) -> tuple[Days, ...]:
    """Return dates and ranges of them; one or a list."""
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    found = (_days(reader, each, key) for each in reader.first_entries(values, MOST_ENTRIES, key))
    return tuple(days for days in found if days)


def _days(reader: FileReader, value: Any, key: str) -> Days | None:
    first_text, dots, last_text = str(value).partition("..")
    first = _parsed(first_text)
    last = _parsed(last_text) if dots else first
    if first is None or last is None:
        reader.add_fault(key, f"{value!r} is not {_USUAL}")
    elif last < first:
        reader.add_fault(key, f"{value} ends before it begins")
    elif last - first >= timedelta(days=MOST_DAYS):
        reader.add_fault(key, f"{value} is longer than {MOST_DAYS} days")
    else:
        return Days(first, last)
    return None


def _date_of(reader: FileReader, value: Any, key: str) -> date | None:
    found = _parsed(str(value))
    if value is not None and found is None:
        reader.add_fault(key, f"{value!r} is not a date such as 2026-12-24")
    return found


def _parsed(text: str) -> date | None:
    try:
        found = date.fromisoformat(text.strip()) if _DATE.fullmatch(text.strip()) else None
    except ValueError:
        return None
    return found if found and FIRST_YEAR < found.year < LAST_YEAR else None


def _list(reader: FileReader, value: Any, key: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        reader.add_fault(key, "must be a list of entries such as {dates: 2026-12-24..2027-01-01, shift: day}")
        return []
    return reader.first_entries(value, MOST_ENTRIES, key)
