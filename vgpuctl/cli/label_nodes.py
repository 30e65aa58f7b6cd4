"""vgpuctl label-nodes"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vgpuctl.cli.access import with_access
from vgpuctl.cli.act import Manner, Order, act
from vgpuctl.cli.options import (
    DebugOption,
    DryRunOption,
    Output,
    OutputOption,
)
from vgpuctl.cli.words import count

if TYPE_CHECKING:
    from vgpuctl.files import Files
    from vgpuctl.operations import Prospect
    from vgpuctl.settings import Flags


@with_access
def command(
    flags: Flags,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Label each worker's node with the profile that its VM really carries.

    Examples:

      vgpuctl label-nodes --dry-run
      vgpuctl label-nodes && kubectl get nodes -L vgpu.type
    """
    act(Manner(flags=flags, output=output, dry_run=dry_run, debug=debug), _order)


def _order(files: Files) -> Order:
    from vgpuctl.planning.wishes import label_wish  # noqa: PLC0415

    return Order(
        wish=lambda fleet: label_wish(fleet, files.catalogue),
        former=None,
        nothing=lambda prospect: f"Every node's label is true. Nothing to do.{_unregistered(prospect)}",
        done=lambda prospect, _report: f"{count(len(prospect.plan.steps), 'node')} labelled.{_unregistered(prospect)}",
    )


def _unregistered(prospect: Prospect) -> str:
    names = [worker.name for worker in prospect.fleet.workers.values() if worker.node is None]
    return f" Not yet registered: {', '.join(names)}." if names else ""
