"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before pods or running VMs are touched.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
TimetableOption = Annotated[
    str | None, typer.Option(help="Which timetable, where several have the shift.", show_default=False)
]
