"""vgpuctl profiles …: are the files right?"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import connected, console, print_json, read_all_files, showing_errors
from vgpuctl.cli.lazy import group
from vgpuctl.cli.options import DebugOption, Output, OutputOption
from vgpuctl.model.errors import ExitCode

if TYPE_CHECKING:
    from vgpuctl.files import Files
    from vgpuctl.reporting.profiles_check import Compared
    from vgpuctl.settings import Flags

app = group(add_completion=False, help="Check the files against vCenter, or print their JSON Schema.")

OfflineOption = Annotated[bool, typer.Option("--offline", help="Check only the files, without vCenter.")]


class Document(StrEnum):
    PROFILES = "profiles"
    TIMETABLE = "timetable"


@app.command()
def schema(
    of: Annotated[Document, typer.Option("--of", help="The kind of file.")] = Document.PROFILES,
) -> None:
    """Print the JSON Schema of profiles.yaml or of a timetable, for editors.

    Examples:

      vgpuctl profiles schema > profiles.schema.json
      vgpuctl profiles schema --of timetable > timetable.schema.json
    """
    from vgpuctl.files.schema import schema_text  # noqa: PLC0415

    typer.echo(schema_text(of.value), nl=False)


@app.command()
@with_access
def check(
    flags: Flags,
    offline: OfflineOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Compare the files with vCenter, and show each problem with its remedy.

    It changes nothing. The exit code is 3 if provision or a switch would be refused, and 0 if there are only warnings.

    Examples:

      vgpuctl profiles check
      vgpuctl profiles check --offline -o json
    """
    with showing_errors(debug=debug):
        _check(flags, output, offline=offline)


def _check(flags: Flags, output: Output, *, offline: bool) -> None:
    from vgpuctl.cli.showing.findings import findings_document, show_findings  # noqa: PLC0415
    from vgpuctl.reporting.profiles_check import Severity, check, check_files  # noqa: PLC0415

    files = read_all_files(flags)
    compared = _files_alone(files) if offline else _compared(flags, files)
    findings = check_files(compared) if offline else check(compared)
    if output is Output.JSON:
        print_json(findings_document(compared, findings))
    else:
        show_findings(console(), compared, findings)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(int(ExitCode.REFUSED))


def _files_alone(files: Files) -> Compared:
    from vgpuctl.model.fleet import Fleet  # noqa: PLC0415
    from vgpuctl.reporting.profiles_check import Compared  # noqa: PLC0415

    return Compared(fleet=Fleet(), catalogue=files.catalogue, timetables=tuple(files.timetables.values()))


def _compared(flags: Flags, files: Files) -> Compared:
    from vgpuctl.reporting.profiles_check import Compared  # noqa: PLC0415
    from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

    with connected(flags, files, ObservationScope(mmio=True, neighbours=True, types=True)) as connection:
        return Compared(
            fleet=connection.fleet(),
            catalogue=files.catalogue,
            timetables=tuple(files.timetables.values()),
            drs=connection.drs(),
            host_facts=connection.host_types(),
        )
