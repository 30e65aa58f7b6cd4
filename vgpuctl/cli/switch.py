"""vgpuctl switch"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.access import with_access
from vgpuctl.cli.act import Manner, Order, act
from vgpuctl.cli.options import (
    DebugOption,
    DryRunOption,
    Output,
    OutputOption,
    TimetableOption,
    YesOption,
)
from vgpuctl.cli.words import clock, seconds

if TYPE_CHECKING:
    from vgpuctl.engine.ports import Report
    from vgpuctl.files import Files
    from vgpuctl.model.fleet import Fleet
    from vgpuctl.model.wish import Wish
    from vgpuctl.settings import Flags

ShiftArgument = Annotated[
    str, typer.Argument(metavar="SHIFT", help="A shift of a timetable, such as day or night.", show_default=False)
]


@with_access
def command(
    flags: Flags,
    shift: ShiftArgument,
    timetable: TimetableOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Put one shift's workers on the cards: the others are drained and suspended, these resumed.

    Run it again after an interruption and it goes on; run another shift and it goes there.

    Examples:

      vgpuctl switch night --dry-run     the plan, in order
      vgpuctl switch night --yes         from a script
    """
    manner = Manner(flags=flags, output=output, dry_run=dry_run, yes=yes, debug=debug)
    act(manner, lambda files: order_of(files, shift, timetable))


def order_of(files: Files, shift: str, name: str | None) -> Order:
    from vgpuctl.planning.wishes import former_wish, switch_wish  # noqa: PLC0415
    from vgpuctl.vsphere.asking import Depth  # noqa: PLC0415

    timetable = files.timetable_of(shift, name)

    def done(_prospect: object, report: Report) -> str:
        return f"{shift} since {clock(datetime.now().astimezone())}, after {seconds(report.seconds)}."

    def wish(fleet: Fleet) -> Wish:
        files.must_be_apart(fleet)
        return switch_wish(fleet, files.catalogue, timetable, shift)

    return Order(
        wish=wish,
        former=former_wish,
        nothing=lambda _: f"It is {shift} already. Nothing to do.",
        done=done,
        depth=Depth(neighbours=True),
        timetable=timetable.name,
    )
