"""vgpuctl status"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import connected, console, explained, print_json, read
from vgpuctl.cli.options import (
    DebugOption,
    Output,
    OutputOption,
)

if TYPE_CHECKING:
    from vgpuctl.settings import Flags


@with_access
def command(
    flags: Flags,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show cards, workers, who waits for which shift, and what is out of step.

    Examples:

      vgpuctl status
      vgpuctl status -o json
    """
    with explained(debug=debug):
        _show(flags, output)


def _show(flags: Flags, output: Output) -> None:
    from datetime import datetime  # noqa: PLC0415

    from vgpuctl.cli.estate import show_estate, status_document  # noqa: PLC0415
    from vgpuctl.planning.standing import standing  # noqa: PLC0415

    files = read(flags)
    with connected(flags, files) as connection:
        fleet = connection.fleet()
    now = datetime.now().astimezone()
    standings = [standing(fleet, files.catalogue, timetable, now) for timetable in files.timetables.values()]
    if output is Output.JSON:
        print_json(status_document(fleet, files.catalogue, standings))
    else:
        show_estate(console(), fleet, files.catalogue, standings)
