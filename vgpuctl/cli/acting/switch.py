"""vgpuctl switch"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.basics.durations import format_duration
from vgpuctl.cli import completing
from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.act import CommandSpec, RunOptions, act
from vgpuctl.cli.options import (
    DebugOption,
    DryRunOption,
    IncludeHeldOption,
    Output,
    OutputOption,
    TimetableOption,
    YesOption,
)
from vgpuctl.cli.selection import duration_s
from vgpuctl.cli.times import clock

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
    typer.Option(
        metavar="DURATION", help="How long a drain may take, instead of the timetable's limit.", show_default=False
    ),
]
AllOrNothingOption = Annotated[
    bool, typer.Option("--all-or-nothing", help="If one host is refused, none begins. If one fails, all go back.")
]


@with_access
def command(
    flags: Flags,
    shift: ShiftArgument,
    timetable: TimetableOption = None,
    timeout: TimeoutOption = None,
    all_or_nothing: AllOrNothingOption = False,
    include_held: IncludeHeldOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Put one shift's workers on the cards: suspend the others, resume these.

    After an interruption, run it again to go on, or with another shift to go there.

    Examples:

      vgpuctl switch night --dry-run     show the plan only
      vgpuctl switch night --yes         do not ask, for scripts
      vgpuctl switch day --timeout 2m    limit each drain to 2 minutes
    """
    options = RunOptions(flags=flags, output=output, dry_run=dry_run, yes=yes, debug=debug)
    drain_s = duration_s(timeout, "--timeout") if timeout else None

    def make_spec(files: Files) -> CommandSpec:
        changed = _with_options(files.timetable_of(shift, timetable), drain_s, all_or_nothing=all_or_nothing)
        spec = switch_spec(files, shift, changed)
        return spec.including_held() if include_held else spec

    act(options, make_spec)


def _with_options(timetable: Timetable, drain_s: float | None, *, all_or_nothing: bool) -> Timetable:
    """Return the timetable, with the command line's changes."""
    drain = timetable.drain if drain_s is None else timetable.drain.within(drain_s)
    return replace(timetable, drain=drain, conduct=replace(timetable.conduct, all_or_nothing=all_or_nothing))


def switch_spec(files: Files, shift: str, timetable: Timetable) -> CommandSpec:
    from vgpuctl.planning.ordering import order_of_switch  # noqa: PLC0415
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
        order=lambda who, fleet: order_of_switch(timetable, shift, fleet.orders, who, datetime.now(UTC)),
    )
