"""One file alone, read as the product reads it together with all others: its faults are one error."""

from __future__ import annotations

from pathlib import Path

from vgpuctl.files.catalogue import parse_catalogue
from vgpuctl.files.reader import FileReader
from vgpuctl.files.timetables import parse_timetable
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable


def read_catalogue(path: Path) -> Catalogue:
    reader = FileReader(path)
    catalogue = parse_catalogue(reader)
    reader.raise_faults()
    return catalogue


def read_timetable(path: Path, catalogue: Catalogue) -> Timetable:
    reader = FileReader(path)
    timetable = parse_timetable(reader, catalogue)
    reader.raise_faults()
    return timetable
