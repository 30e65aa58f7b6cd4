"""vgpuctl switch"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.act import Manner, Order, act
from vgpuctl.cli.options import (
    ContextOption,
    DebugOption,
    DryRunOption,
    KubeconfigOption,
    NamespaceOption,
    Output,
    OutputOption,
    ProfilesOption,
    SchedulesOption,
    TimetableOption,
    YesOption,
)
from vgpuctl.cli.words import clock, seconds

if TYPE_CHECKING:
    from vgpuctl.engine.ports import Report
    from vgpuctl.files import Files

ShiftArgument = Annotated[
    str, typer.Argument(metavar="SHIFT", help="A shift of a timetable, such as day or night.", show_default=False)
]


def command(
    shift: ShiftArgument,
    timetable: TimetableOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
    profiles: ProfilesOption = None,
    schedules: SchedulesOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    debug: DebugOption = False,
) -> None:
    """Put one shift's workers on the cards: the others are drained and suspended, these resumed.

    Run it again after an interruption and it goes on; run another shift and it goes there.

    Examples:

      vgpuctl switch night --dry-run     the plan, in order
      vgpuctl switch night --yes         from a script
    """
    from vgpuctl.settings import Flags  # noqa: PLC0415

    flags = Flags(profiles=profiles, schedules=schedules, kubeconfig=kubeconfig, context=context, namespace=namespace)
    manner = Manner(flags=flags, output=output, dry_run=dry_run, yes=yes, debug=debug)
    act(manner, lambda files: order_of(files, shift, timetable))


def order_of(files: Files, shift: str, name: str | None) -> Order:
    from vgpuctl.planning.wishes import former_wish, switch_wish  # noqa: PLC0415

    timetable = files.timetable_of(shift, name)

    def done(_prospect: object, report: Report) -> str:
        return f"{shift} since {clock(datetime.now().astimezone())}, after {seconds(report.seconds)}."

    return Order(
        wish=lambda fleet: switch_wish(fleet, files.catalogue, timetable, shift),
        former=former_wish,
        nothing=f"It is {shift} already. Nothing to do.",
        done=done,
    )
