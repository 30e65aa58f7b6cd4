"""What a shell may put in for a word that was begun: names of the files, which are read when a tab asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vgpuctl.cli.sanitize import one_line

if TYPE_CHECKING:
    from vgpuctl.files import Files

Completion = Callable[[typer.Context, str], list[str]]

#: More names than a person would look through.
MOST = 500


def _of(names: Callable[[Files], Iterable[str]]) -> Completion:
    """Completion never raises: it offers nothing when the files cannot be read, nor a name that a terminal obeys."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            known = list(names(_files(ctx)))
        except Exception:
            return []
        return [name for name in known if name.startswith(incomplete) and one_line(name) == name][:MOST]

    return complete


def _files(ctx: typer.Context) -> Files:
    from vgpuctl.files import read_through  # noqa: PLC0415
    from vgpuctl.settings import Flags, profiles_path, schedules_path  # noqa: PLC0415

    said = {name: Path(ctx.params[name]) for name in ("profiles", "schedules", "config") if ctx.params.get(name)}
    flags = Flags(**said)  # type: ignore[arg-type]
    return read_through(profiles_path(flags), schedules_path(flags))[1]


shifts = _of(lambda files: dict.fromkeys(shift for table in files.timetables.values() for shift in table.shifts))
timetables = _of(lambda files: files.timetables)
profiles = _of(lambda files: [*files.catalogue.profiles, "none"])
#: Those that are written out by name; who is chosen by other things, only vCenter knows.
workers = _of(lambda files: files.catalogue.named)
