"""vgpuctl status"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import connected, console, read_all_files, showing_errors
from vgpuctl.cli.options import DebugOption, StatusOutput, StatusOutputOption, WorkersArgument
from vgpuctl.model.errors import ExitCode

if TYPE_CHECKING:
    from vgpuctl.cli.showing.estate.views import View
    from vgpuctl.cli.showing.estate.watching import SituationSource
    from vgpuctl.observe.wiring import Connection
    from vgpuctl.planning.selection import Selection
    from vgpuctl.settings import Flags

SelectorOption = Annotated[
    str | None,
    typer.Option(
        "--selector", "-l", help="Show only workers whose nodes have these labels, as in kubectl.", show_default=False
    ),
]
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Keep watching, and show each change.")]


@with_access
def command(
    flags: Flags,
    workers: WorkersArgument = None,
    selector: SelectorOption = None,
    output: StatusOutputOption = StatusOutput.TABLE,
    watch: WatchOption = False,
    debug: DebugOption = False,
) -> None:
    """Show cards, workers, waiting pods, and what is out of step.

    Examples:

      vgpuctl status
      vgpuctl status 'worker-[1-4]' -o wide
      vgpuctl status -l topology.kubernetes.io/zone=a -w
      vgpuctl status -o json
    """
    with showing_errors(debug=debug):
        _show(flags, _selection(workers, selector), output, watching=watch)


def _selection(workers: list[str] | None, selector: str | None) -> Selection:
    from vgpuctl.cli.selection import worker_names  # noqa: PLC0415
    from vgpuctl.model.selectors import parse_selector  # noqa: PLC0415
    from vgpuctl.planning.selection import Selection  # noqa: PLC0415

    return Selection(worker_names(workers), parse_selector(selector) if selector is not None else None)


def _show(flags: Flags, selection: Selection, output: StatusOutput, *, watching: bool) -> None:
    from vgpuctl.cli.showing.estate.watching import SituationSource  # noqa: PLC0415
    from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

    files = read_all_files(flags)
    with connected(flags, files, ObservationScope(scales=files.scales)) as connection:
        source = SituationSource(connection, files, selection, follow=watching)
        view = _view(output, watching=watching)
        if watching:
            _watch(connection, source, view)
        view.show(source.look())


def _watch(connection: Connection, source: SituationSource, view: View) -> None:
    """Watch until Ctrl-C. As for `kubectl get -w`, the exit code shows that it did not end by itself."""
    from vgpuctl.cli.showing.estate.watching import RedrawTimer, watch  # noqa: PLC0415

    timer = RedrawTimer()
    connection.on_change(timer.changed)
    try:
        # A switch reads departures just before it writes. A command that stays would show those of its start.
        connection.follow(ledger=True)
        watch(source.look, timer.wait, view)
    except KeyboardInterrupt:
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None


def _view(output: StatusOutput, *, watching: bool) -> View:
    """Return the view for an output. Output for programs does not load rich."""
    from vgpuctl.cli import documents  # noqa: PLC0415
    from vgpuctl.cli.showing.estate import views  # noqa: PLC0415

    match output:
        case StatusOutput.JSON:
            return views.Documents(documents.as_line if watching else documents.as_json)
        case StatusOutput.YAML:
            return views.Documents(documents.as_yaml)
        case StatusOutput.NAME:
            return views.WorkerNames()
    from vgpuctl.cli.showing.estate.live import for_people  # noqa: PLC0415

    return for_people(console(), wide=output is StatusOutput.WIDE, watching=watching)
