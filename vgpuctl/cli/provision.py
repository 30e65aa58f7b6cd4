"""vgpuctl provision"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vgpuctl.cli.access import with_access
from vgpuctl.cli.act import Manner, Order, act
from vgpuctl.cli.options import (
    DebugOption,
    DryRunOption,
    Output,
    OutputOption,
    YesOption,
)
from vgpuctl.cli.words import count, seconds

if TYPE_CHECKING:
    from vgpuctl.files import Files
    from vgpuctl.settings import Flags


@with_access
def command(
    flags: Flags,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Give each worker the vGPU of its profile, and leave its power as it was.

    A VM that runs with the wrong vGPU is drained, shut down, changed, started and uncordoned again.

    Examples:

      vgpuctl provision --dry-run     what would be attached where
      vgpuctl provision --yes         without asking before a running VM is touched
    """
    act(Manner(flags=flags, output=output, dry_run=dry_run, yes=yes, debug=debug), _order)


def _order(files: Files) -> Order:
    from vgpuctl.model.timetable import DrainOptions  # noqa: PLC0415
    from vgpuctl.planning.wishes import former_wish, provision_wish  # noqa: PLC0415

    return Order(
        wish=lambda fleet: provision_wish(fleet, files.catalogue, DrainOptions()),
        former=former_wish,
        nothing=lambda _: "Every worker carries its profile. Nothing to do.",
        done=lambda prospect, report: (
            f"{count(len({step.worker for step in prospect.plan}), 'worker')} provisioned in {seconds(report.seconds)}."
        ),
    )
