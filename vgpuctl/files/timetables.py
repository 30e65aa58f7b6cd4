"""schedules/*.yaml: one timetable per file, named after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from zoneinfo import available_timezones

from cronsim import CronSim, CronSimError

from vgpuctl.basics.names import Names
from vgpuctl.files import conduct
from vgpuctl.files.catalogue import known_profile
from vgpuctl.files.dates import KEYS as DATE_KEYS
from vgpuctl.files.dates import parse_days, parse_season, parse_staying
from vgpuctl.files.drains import parse_drain
from vgpuctl.files.holding import parse_hold_while
from vgpuctl.files.reader import FAULTS_SHOWN, FileReader
from vgpuctl.files.scaling import parse_scale
from vgpuctl.files.timing import KEYS as TIMING_KEYS
from vgpuctl.files.timing import parse_announce, parse_retry, parse_timing
from vgpuctl.model.conduct import Mode
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.timing import Timing

#: Nodes and workloads carry the name of the shift that they sleep for, so its length is limited.
LONGEST_NAME = 253
MOST_SHIFTS, MOST_STARTS = 100, 100
_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_KEYS = ("version", "timezone", "shifts", "drain", "hold_while", "retry", "announce")


@dataclass(frozen=True, slots=True)
class _General:
    """What the files say for all shifts of a timetable."""

    catalogue: Catalogue
    mode: Mode
    timing: Timing


def parse_timetable(reader: FileReader, catalogue: Catalogue) -> Timetable:
    """Return as much of the timetable as can be understood; its faults are in the reader."""
    document = reader.read_document((*_KEYS, *DATE_KEYS, *TIMING_KEYS, *conduct.KEYS))
    timezone = document.get("timezone")
    if not isinstance(timezone, str):
        reader.add_fault("timezone", "must be the name of a time zone, such as Europe/Berlin")
    elif timezone not in available_timezones():
        reader.add_fault(
            "timezone", f"there is no time zone {timezone}{reader.suggestion(timezone, available_timezones())}"
        )
    mode = conduct.parse_mode(reader, document)
    general = _General(catalogue, mode, parse_timing(reader, document, "", Timing()))
    written = reader.read_mapping(document.get("shifts"), "shifts").items()
    entries = reader.first_entries(written, MOST_SHIFTS, "shifts")
    shifts = {name: _shift(reader, name, value, general) for name, value in entries}
    if not shifts:
        reader.add_fault("shifts", "has no shifts")
    return Timetable(
        name=reader.path.stem,
        timezone=str(timezone),
        shifts=shifts,
        drain=parse_drain(reader, document.get("drain")),
        conduct=conduct.parse_conduct(reader, document),
        mode=mode,
        max_unavailable=conduct.max_unavailable(reader, document.get("max_unavailable")),
        season=parse_season(reader, document),
        staying=parse_staying(reader, document.get("except"), shifts),
        hold_while=parse_hold_while(reader, document.get("hold_while")),
        retry=parse_retry(reader, document.get("retry")),
        announce=parse_announce(reader, document.get("announce")),
    )


def _shift(reader: FileReader, name: str, value: Any, general: _General) -> Shift:
    key, catalogue = f"shifts.{name}", general.catalogue
    if len(name) > LONGEST_NAME:
        reader.add_fault("shifts", f"the name of a shift is longer than {LONGEST_NAME} characters")
    entry = reader.read_mapping(value, key)
    reader.check_keys(entry, ("starts", "profiles", "workers", "scale", *DATE_KEYS, *TIMING_KEYS), f"{key}.")
    profiles = reader.read_texts(entry.get("profiles"), f"{key}.profiles")
    carried: tuple[tuple[Names, Profile], ...] = ()
    if general.mode is Mode.REPLACE:
        carried = _worker_profiles(reader, entry.get("workers"), f"{key}.workers", catalogue)
        if profiles:
            reader.add_fault(
                f"{key}.profiles", "has no effect with mode: replace; under workers, give each worker its profile"
            )
        workers = Names(tuple(pattern for names, _ in carried for pattern in names.patterns))
    else:
        workers = reader.read_names(reader.read_texts(entry.get("workers"), f"{key}.workers"), f"{key}.workers")
    unknown = (worker for worker in workers.plain if not catalogue.may_name(worker))
    for worker in islice(unknown, FAULTS_SHOWN):
        reader.add_fault(f"{key}.workers", f"there is no worker {worker}{reader.suggestion(worker, catalogue.named)}")
    return Shift(
        name=name,
        starts=_starts(reader, entry, f"{key}.starts"),
        profiles=frozenset(known_profile(reader, profile, f"{key}.profiles", catalogue) for profile in profiles),
        workers=workers,
        carrying=carried,
        scale=parse_scale(reader, entry.get("scale"), f"{key}.scale"),
        season=parse_season(reader, entry, f"{key}."),
        never_on=parse_days(reader, entry.get("except"), f"{key}.except"),
        timing=parse_timing(reader, entry, f"{key}.", general.timing),
        where=reader.place(key),
    )


def _worker_profiles(
    reader: FileReader, value: Any, key: str, catalogue: Catalogue
) -> tuple[tuple[Names, Profile], ...]:
    """Return workers by name, range or glob, each with the profile that it carries in this shift."""
    found = []
    for pattern, profile_name in reader.read_mapping(value, key).items():
        names = reader.read_names((pattern,), f"{key}.{pattern}")
        if known := known_profile(reader, profile_name, f"{key}.{pattern}", catalogue):
            found.append((names, catalogue.profile(known)))
    return tuple(found)


def _starts(reader: FileReader, entry: dict[str, Any], key: str) -> tuple[str, ...]:
    starts = tuple(reader.first_entries(reader.read_texts(entry.get("starts"), key), MOST_STARTS, key))
    if not starts:
        reader.add_fault(key, "needs a start, such as 0 20 * * *")
    for line in starts:
        if reason := _cron_fault(line):
            reader.add_fault(key, f"{line!r} is not a cron line: {reason}")
    return starts


def _cron_fault(line: str) -> str:
    # cronsim also takes six fields, the first of them seconds. Standard cron has five.
    if len(line.split()) != 5:
        return "it needs five fields (minute, hour, day, month, weekday)"
    try:
        CronSim(line, _SOME_TIME)
    except CronSimError as error:
        return str(error)
    return ""
