"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from vgpuctl.cli import completing


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


class StatusOutput(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class HistoryOutput(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")]
StatusOutputOption = Annotated[StatusOutput, typer.Option("--output", "-o", help="How to print the result.")]
HistoryOutputOption = Annotated[HistoryOutput, typer.Option("--output", "-o", help="How to print the result.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before pods or running VMs are changed.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
WorkersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORKER",
        help="Names, ranges such as worker-[1-4], or globs. Default: all workers.",
        show_default=False,
        autocompletion=completing.workers,
    ),
]
DrainTimeoutOption = Annotated[
    str, typer.Option(metavar="DURATION", help="How long a drain may take before it counts as stuck.")
]
GracePeriodOption = Annotated[
    int | None,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Give pods this long to end, instead of their own grace period.",
        show_default=False,
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Also evict pods that no controller would replace.")]
DeleteEmptyDirOption = Annotated[
    bool, typer.Option("--delete-emptydir-data", help="Also evict pods that keep data in an emptyDir.")
]
IncludeHeldOption = Annotated[
    bool, typer.Option("--include-held", help="Also move workers that a person holds (vgpuctl hold).")
]
UntilOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="When it ends: 18:00, '2026-11-21 08:00' or as in RFC 3339.", show_default=False),
]
ForOption = Annotated[
    str | None,
    typer.Option("--for", metavar="DURATION", help="How long it lasts, such as 90m or 2h.", show_default=False),
]
TimetableOption = Annotated[
    str | None,
    typer.Option(
        help="The timetable, if several have this shift.",
        show_default=False,
        autocompletion=completing.timetables,
    ),
]
