"""When switches begin and are tried again: `early`, `begin_by`, `skip_after`, `min_run`, `announce` and `retry`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from vgpuctl.basics.durations import parse_duration
from vgpuctl.files.reader import FileReader
from vgpuctl.model.timing import ANNOUNCE, Retry, Timing

#: Keys of a timetable and of a shift.
KEYS = ("early", "begin_by", "skip_after", "min_run")
#: A start comes once a year at the rarest, so no duration beside it is longer.
MOST_DAYS = 366
MOST_TRIES = 100


def parse_timing(reader: FileReader, entries: Mapping[str, Any], key: str, defaults: Timing) -> Timing:
    """Return the timing of a timetable, or of a shift whose timetable has these defaults."""

    def read(name: str, default: timedelta | None) -> timedelta | None:
        return _duration(reader, entries.get(name), f"{key}{name}", default)

    skip_after = read("skip_after", defaults.skip_after)
    if skip_after == timedelta():
        reader.add_fault(f"{key}skip_after", "must be longer than 0, because every start would be skipped")
    begin_by = read("begin_by", defaults.begin_by)
    own = [name for name in ("begin_by", "skip_after") if entries.get(name) is not None]
    # Without a value of its own, the shift has the fault of its timetable, which is reported there.
    if own and begin_by and skip_after and begin_by > skip_after:
        why = "begin_by is later than skip_after, so the start would be skipped before it may begin"
        reader.add_fault(f"{key}{own[0]}", why)
    return Timing(
        early=_early(reader, entries.get("early"), f"{key}early", defaults),
        begin_by=begin_by,
        skip_after=skip_after,
        min_run=read("min_run", defaults.min_run),
    )


def parse_announce(reader: FileReader, value: Any) -> timedelta:
    found = _duration(reader, value, "announce", ANNOUNCE)
    return ANNOUNCE if found is None else found


def parse_retry(reader: FileReader, value: Any) -> Retry:
    entry = reader.read_mapping(value, "retry")
    reader.check_keys(entry, ("tries", "pause"), "retry.")
    tries, usual = entry.get("tries", Retry().tries), f"must be a whole number from 1 to {MOST_TRIES}"
    # In Python, True equals 1.
    if not isinstance(tries, int) or isinstance(tries, bool) or not 1 <= tries <= MOST_TRIES:
        reader.add_fault("retry.tries", usual)
        tries = Retry().tries
    pause = _duration(reader, entry.get("pause"), "retry.pause", Retry().pause) or timedelta()
    if not pause:
        reader.add_fault("retry.pause", "must be longer than 0, because each pause is twice the one before")
    return Retry(tries=tries, pause=pause)


def _early(reader: FileReader, value: Any, key: str, defaults: Timing) -> timedelta | Literal["auto"] | None:
    if value is None:
        return defaults.early
    return "auto" if value == "auto" else _duration(reader, value, key, None, ", or auto")


def _duration(
    reader: FileReader, value: Any, key: str, default: timedelta | None, others: str = ""
) -> timedelta | None:
    """Return a duration. `others`: the words, beside durations, that a fault offers."""
    if value is None:
        return default
    seconds = parse_duration(str(value))
    if seconds is None:
        reader.add_fault(key, f"{value!r} is not a duration such as 90s, 10m or 1h{others}")
    elif seconds > timedelta(days=MOST_DAYS).total_seconds():
        reader.add_fault(key, f"{value} is longer than {MOST_DAYS} days")
    else:
        return timedelta(seconds=seconds)
    return default
