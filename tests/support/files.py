"""One file alone, read as the product reads it together with all others: its faults are one error."""

from __future__ import annotations

from pathlib import Path

from vgpuctl.files.catalogue import catalogue_of
from vgpuctl.files.reading import Reading
from vgpuctl.files.timetables import timetable_of
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable


def read_catalogue(path: Path) -> Catalogue:
    reading = Reading(path)
    catalogue = catalogue_of(reading)
    reading.finish()
    return catalogue


def read_timetable(path: Path, catalogue: Catalogue) -> Timetable:
    reading = Reading(path)
    timetable = timetable_of(reading, catalogue)
    reading.finish()
    return timetable
