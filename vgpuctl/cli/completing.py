"""Completion of words from the files, which are read when Tab is pressed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vgpuctl.cli.sanitize import one_line

if TYPE_CHECKING:
    from vgpuctl.files import Files

Completion = Callable[[typer.Context, str], list[str]]

#: More names than a person looks through.
MOST = 500


def _of(names: Callable[[Files], Iterable[str]]) -> Completion:
    """Return a completion. It never raises.

    It offers nothing when the files cannot be read, and no name with control characters.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            known = list(names(_files(ctx)))
        except Exception:
            return []
        return [name for name in known if name.startswith(incomplete) and one_line(name) == name][:MOST]

    return complete


def _files(ctx: typer.Context) -> Files:
    from vgpuctl.files import read_and_collect  # noqa: PLC0415
    from vgpuctl.settings import Flags, profiles_path, schedules_path  # noqa: PLC0415

    paths = {name: Path(ctx.params[name]) for name in ("profiles", "schedules", "config") if ctx.params.get(name)}
    flags = Flags(**paths)  # type: ignore[arg-type]
    return read_and_collect(profiles_path(flags), schedules_path(flags))[1]


shifts = _of(lambda files: dict.fromkeys(shift for table in files.timetables.values() for shift in table.shifts))
timetables = _of(lambda files: files.timetables)
profiles = _of(lambda files: [*files.catalogue.profiles, "none"])
#: The workers that are named in the file; only vCenter knows those chosen by other conditions.
workers = _of(lambda files: files.catalogue.named)
