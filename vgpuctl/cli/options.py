"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")]
ProfilesOption = Annotated[
    Path | None,
    typer.Option(help="The profiles file; default $VGPUCTL_PROFILES, then ./profiles.yaml.", show_default=False),
]
SchedulesOption = Annotated[
    Path | None,
    typer.Option(help="The folder of timetables; default $VGPUCTL_SCHEDULES, then ./schedules.", show_default=False),
]
KubeconfigOption = Annotated[
    str | None, typer.Option(help="The kubeconfig; default $KUBECONFIG, then ~/.kube/config.", show_default=False)
]
ContextOption = Annotated[str | None, typer.Option(help="The context of the kubeconfig.", show_default=False)]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="Where vgpuctl keeps its Lease; default $VGPUCTL_NAMESPACE, then kube-system.",
        show_default=False,
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before pods or running VMs are touched.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
TimetableOption = Annotated[
    str | None, typer.Option(help="Which timetable, where several have the shift.", show_default=False)
]
