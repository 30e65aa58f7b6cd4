"""vgpuctl label-nodes"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.basics.phrases import count
from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.act import CommandSpec, RunOptions, act
from vgpuctl.cli.options import (
    DebugOption,
    DryRunOption,
    Output,
    OutputOption,
)
from vgpuctl.cli.sanitize import one_line

if TYPE_CHECKING:
    from vgpuctl.files import Files
    from vgpuctl.operations import Preview
    from vgpuctl.settings import Flags


PruneOption = Annotated[
    bool, typer.Option("--prune", help="Also remove our labels from nodes that profiles.yaml no longer makes workers.")
]


@with_access
def command(
    flags: Flags,
    prune: PruneOption = False,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Label each worker's node with the profile that its VM carries, and with facts to select by.

    The labels are vgpu.type=<profile> (the key is a setting), vgpuctl.io/card, vgpuctl.io/frame-mib, vgpuctl.io/vgpu
    and vgpuctl.io/host. Wrong values are corrected or removed. Other labels are not touched.

    Examples:

      vgpuctl label-nodes --dry-run
      vgpuctl label-nodes && kubectl get nodes -L vgpu.type
      vgpuctl label-nodes --prune   after workers were removed from profiles.yaml
    """
    options = RunOptions(flags=flags, output=output, dry_run=dry_run, debug=debug)
    act(options, lambda files: _spec(files, prune=prune))


def _spec(files: Files, *, prune: bool) -> CommandSpec:
    from vgpuctl.planning.wishes import label_wish  # noqa: PLC0415

    return CommandSpec(
        wish=lambda fleet: label_wish(fleet, files.catalogue, prune=prune),
        former=None,
        nothing_to_do=lambda preview: f"All nodes have the right labels. Nothing to do.{_unregistered(preview)}",
        done_text=lambda preview, _report: (
            f"{count(len(preview.plan.steps), 'node')} labelled.{_unregistered(preview)}"
        ),
    )


def _unregistered(preview: Preview) -> str:
    names = [worker.name for worker in preview.fleet.workers.values() if worker.node is None]
    return one_line(f" Not yet registered: {', '.join(names)}.") if names else ""
