"""schedules/*.yaml: one timetable per file, named after it."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any
from zoneinfo import available_timezones

from cronsim import CronSim, CronSimError

from vgpuctl.files import conduct
from vgpuctl.files.drains import drain_of
from vgpuctl.files.reading import FAULTS_SHOWN, Reading
from vgpuctl.files.scaling import scale_of
from vgpuctl.model.conduct import Mode
from vgpuctl.model.names import Names
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.model.timetable import Shift, Timetable

#: Nodes and workloads carry the name of the shift that they sleep for, so its length is limited.
LONGEST_NAME = 253
MOST_SHIFTS, MOST_STARTS = 100, 100
_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def timetable_of(reading: Reading, catalogue: Catalogue) -> Timetable:
    """Return as much of the timetable as can be understood; its faults are in the reading."""
    found = reading.document(("version", "timezone", "shifts", "drain", *conduct.KEYS))
    timezone = found.get("timezone")
    if not isinstance(timezone, str):
        reading.wrong("timezone", "must be a name, such as Europe/Berlin")
    elif timezone not in available_timezones():
        reading.wrong("timezone", f"no time zone {timezone}{reading.near(timezone, available_timezones())}")
    mode = conduct.mode_of(reading, found)
    shifts = {
        name: _shift(reading, name, value, catalogue, mode)
        for name, value in reading.few(reading.mapping(found.get("shifts"), "shifts").items(), MOST_SHIFTS, "shifts")
    }
    if not shifts:
        reading.wrong("shifts", "names no shift")
    return Timetable(
        name=reading.path.stem,
        timezone=str(timezone),
        shifts=shifts,
        drain=drain_of(reading, found.get("drain")),
        conduct=conduct.conduct_of(reading, found),
        mode=mode,
        max_unavailable=conduct.max_unavailable(reading, found.get("max_unavailable")),
    )


def _shift(reading: Reading, name: str, value: Any, catalogue: Catalogue, mode: Mode) -> Shift:
    key = f"shifts.{name}"
    if len(name) > LONGEST_NAME:
        reading.wrong("shifts", f"a name is longer than {LONGEST_NAME} characters")
    entry = reading.mapping(value, key)
    reading.known(entry, ("starts", "profiles", "workers", "scale"), f"{key}.")
    profiles = reading.texts(entry.get("profiles"), f"{key}.profiles")
    carrying = _carrying(reading, entry.get("workers"), f"{key}.workers", catalogue) if mode is Mode.REPLACE else ()
    if mode is Mode.REPLACE:
        if profiles:
            reading.wrong(f"{key}.profiles", "has no meaning with mode: replace; give each of workers its profile")
        workers = Names(tuple(pattern for names, _ in carrying for pattern in names.patterns))
    else:
        workers = reading.names(reading.texts(entry.get("workers"), f"{key}.workers"), f"{key}.workers")
    unknown = (worker for worker in workers.plain if not catalogue.may_name(worker))
    for worker in islice(unknown, FAULTS_SHOWN):
        reading.wrong(f"{key}.workers", f"no worker {worker}{reading.near(worker, catalogue.named)}")
    return Shift(
        name=name,
        starts=_starts(reading, entry, f"{key}.starts"),
        profiles=frozenset(_known(reading, f"{key}.profiles", profile, catalogue) for profile in profiles),
        workers=workers,
        carrying=carrying,
        scale=scale_of(reading, entry.get("scale"), f"{key}.scale"),
        where=reading.where(key),
    )


def _carrying(reading: Reading, value: Any, key: str, catalogue: Catalogue) -> tuple[tuple[Names, Profile], ...]:
    """Return workers by name, range or glob, each with the profile that it carries in this shift."""
    found = []
    for pattern, wanted in reading.mapping(value, key).items():
        names = reading.names((pattern,), f"{key}.{pattern}")
        if not isinstance(wanted, str):
            reading.wrong(f"{key}.{pattern}", "must be a profile's name")
        elif known := _known(reading, f"{key}.{pattern}", wanted, catalogue):
            found.append((names, catalogue.profile(known)))
    return tuple(found)


def _starts(reading: Reading, entry: dict[str, Any], key: str) -> tuple[str, ...]:
    starts = tuple(reading.few(reading.texts(entry.get("starts"), key), MOST_STARTS, key))
    if not starts:
        reading.wrong(key, "names no start, such as 0 20 * * *")
    for line in starts:
        if reason := _no_cron(line):
            reading.wrong(key, f"{line!r} is no cron line: {reason}")
    return starts


def _no_cron(line: str) -> str:
    if len(line.split()) != 5:
        return "it needs five fields (minute, hour, day, month, weekday)"
    try:
        CronSim(line, _SOME_TIME)
    except CronSimError as error:
        return str(error)
    return ""


def _known(reading: Reading, key: str, profile: str, catalogue: Catalogue) -> str:
    known = catalogue.called(profile)
    if known is None:
        reading.wrong(key, f"no profile {profile}{reading.near(profile, catalogue.profiles)}")
    return known or ""
