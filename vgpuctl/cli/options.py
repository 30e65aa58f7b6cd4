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
StatusOutputOption = Annotated[StatusOutput, typer.Option("--output", "-o", help="How to print it.")]
HistoryOutputOption = Annotated[HistoryOutput, typer.Option("--output", "-o", help="How to print it.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before pods or running VMs are touched.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
WorkersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORKER",
        help="Names, ranges such as worker-[1-4], or globs; default: all.",
        show_default=False,
        autocompletion=completing.workers,
    ),
]
DrainTimeoutOption = Annotated[str, typer.Option(metavar="DURATION", help="How long a drain may take.")]
GracePeriodOption = Annotated[
    int | None,
    typer.Option(metavar="SECONDS", min=0, help="Instead of the pods' own grace period.", show_default=False),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Also delete pods that no controller would replace.")]
DeleteEmptyDirOption = Annotated[
    bool, typer.Option("--delete-emptydir-data", help="Also delete pods that keep data in an emptyDir.")
]
TimetableOption = Annotated[
    str | None,
    typer.Option(
        help="Which timetable, where several have the shift.",
        show_default=False,
        autocompletion=completing.timetables,
    ),
]
