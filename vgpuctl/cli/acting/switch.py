"""vgpuctl switch"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli import completing
from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.act import CommandSpec, RunOptions, act
from vgpuctl.cli.options import (
    DebugOption,
    DryRunOption,
    Output,
    OutputOption,
    TimetableOption,
    YesOption,
)
from vgpuctl.cli.selection import duration_s
from vgpuctl.cli.times import clock
from vgpuctl.model.durations import format_duration

if TYPE_CHECKING:
    from vgpuctl.engine.ports import Report
    from vgpuctl.files import Files
    from vgpuctl.model.fleet import Fleet
    from vgpuctl.model.timetable import Timetable
    from vgpuctl.model.wish import Wish
    from vgpuctl.settings import Flags

ShiftArgument = Annotated[
    str,
    typer.Argument(
        metavar="SHIFT",
        help="A shift of a timetable, such as day or night.",
        show_default=False,
        autocompletion=completing.shifts,
    ),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="How long a drain may take, instead of the timetable's.", show_default=False),
]
AllOrNothingOption = Annotated[
    bool, typer.Option("--all-or-nothing", help="One host refused: none begins. One host failed: all go back.")
]


@with_access
def command(
    flags: Flags,
    shift: ShiftArgument,
    timetable: TimetableOption = None,
    timeout: TimeoutOption = None,
    all_or_nothing: AllOrNothingOption = False,
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
      vgpuctl switch day --timeout 2m    a host whose drain takes longer goes back
    """
    options = RunOptions(flags=flags, output=output, dry_run=dry_run, yes=yes, debug=debug)
    drain_s = duration_s(timeout, "--timeout") if timeout else None

    def make_spec(files: Files) -> CommandSpec:
        changed = _with_options(files.timetable_of(shift, timetable), drain_s, all_or_nothing=all_or_nothing)
        return switch_spec(files, shift, changed)

    act(options, make_spec)


def _with_options(timetable: Timetable, drain_s: float | None, *, all_or_nothing: bool) -> Timetable:
    """Return the timetable, with the command line's changes."""
    drain = timetable.drain if drain_s is None else timetable.drain.within(drain_s)
    return replace(timetable, drain=drain, conduct=replace(timetable.conduct, all_or_nothing=all_or_nothing))


def switch_spec(files: Files, shift: str, timetable: Timetable) -> CommandSpec:
    from vgpuctl.planning.wishes import former_wish, switch_wish  # noqa: PLC0415
    from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

    def done_text(_preview: object, report: Report) -> str:
        return f"{shift} since {clock(datetime.now().astimezone())}, after {format_duration(report.seconds)}."

    def wish(fleet: Fleet) -> Wish:
        files.check_unique(fleet)
        return switch_wish(fleet, files.catalogue, timetable, shift, datetime.now(UTC))

    return CommandSpec(
        wish=wish,
        former=former_wish,
        nothing_to_do=lambda _: f"It is {shift} already. Nothing to do.",
        done_text=done_text,
        scope=ObservationScope(neighbours=True, drains=True, scales=timetable.scales),
        timetable=timetable.name,
    )
