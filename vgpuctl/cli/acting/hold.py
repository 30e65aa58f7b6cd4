"""vgpuctl hold and vgpuctl unhold"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgpuctl.cli import completing
from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.act import RunOptions
from vgpuctl.cli.common import connected, console, print_json, read_all_files, showing_errors
from vgpuctl.cli.options import DebugOption, ForOption, Output, OutputOption, UntilOption
from vgpuctl.cli.selection import end_of_order
from vgpuctl.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from vgpuctl.model.fleet import Fleet, Worker
    from vgpuctl.model.hold import Hold
    from vgpuctl.observe.wiring import Connection
    from vgpuctl.settings import Flags

#: Returns the workers that the command is about.
Choose = Callable[["Fleet"], list["Worker"]]

_ARGUMENT = typer.Argument(
    metavar="WORKER|HOST",
    help="Workers, or hosts: the workers that are on them now. Names, ranges such as worker-[1-4], or globs.",
    show_default=False,
    autocompletion=completing.workers,
)
NamesArgument = Annotated[list[str], _ARGUMENT]
SomeNamesArgument = Annotated[list[str] | None, _ARGUMENT]
ReasonOption = Annotated[str, typer.Option(metavar="TEXT", help="Why, for colleagues.", show_default=False)]
AllOption = Annotated[bool, typer.Option("--all", help="End the holds of all workers.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]


@with_access
def hold(
    flags: Flags,
    names: NamesArgument,
    until: UntilOption = None,
    lasting: ForOption = None,
    reason: ReasonOption = "",
    dry_run: DryOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Keep workers as they are: no shift, switch or provision moves them until the hold ends.

    Workers that need a held worker's card stay asleep; the others go on. A new hold replaces the one before.

    Examples:

      vgpuctl hold worker-1 --until 18:00 --reason 'driver test'
      vgpuctl hold esx-1 --for 2h       all workers that are on this host now
      vgpuctl hold worker-[1-4] --until '2026-11-21 08:00'
      vgpuctl hold worker-1             until vgpuctl unhold worker-1
    """
    from vgpuctl.model.hold import Hold  # noqa: PLC0415

    options = RunOptions(flags=flags, output=output, dry_run=dry_run, debug=debug)
    with showing_errors(debug=debug):
        now = datetime.now(UTC).replace(microsecond=0)
        end = end_of_order(until, lasting, now)

        def placed(connection: Connection) -> Hold:
            since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
            return Hold(who=connection.person(), since=since, until=end, reason=reason)

        _change(options, lambda fleet: _named(fleet, names), placed)


@with_access
def unhold(
    flags: Flags,
    names: SomeNamesArgument = None,
    every: AllOption = False,
    dry_run: DryOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """End holds at once: the daemon, switch and provision move these workers again.

    Examples:

      vgpuctl unhold worker-1
      vgpuctl unhold esx-1      all workers that are on this host now
      vgpuctl unhold --all
    """
    options = RunOptions(flags=flags, output=output, dry_run=dry_run, debug=debug)
    with showing_errors(debug=debug):
        if bool(names) is every:
            raise UsageError("unhold needs the names of workers or hosts, or --all.")
        _change(options, lambda fleet: _named(fleet, names) if names else _held(fleet), lambda _: None)


def _named(fleet: Fleet, patterns: list[str]) -> list[Worker]:
    from vgpuctl.cli.selection import worker_names  # noqa: PLC0415
    from vgpuctl.planning.selection import workers_or_hosts  # noqa: PLC0415

    names = worker_names(patterns)
    return workers_or_hosts(fleet, names) if names else []


def _held(fleet: Fleet) -> list[Worker]:
    return [worker for worker in fleet.workers.values() if worker.hold]


def _change(options: RunOptions, choose: Choose, placed: Callable[[Connection], Hold | None]) -> None:
    """Write the holds. The process ends with 1 if a worker has no node that could bear one."""
    files = read_all_files(options.flags)
    with connected(options.flags, files) as connection:
        workers = choose(connection.fleet())
        new = placed(connection)
        if not options.dry_run:
            _write(connection, workers, new)
    without = [worker.name for worker in workers if worker.node is None]
    if options.output is Output.JSON:
        print_json(_document(workers, new))
    else:
        _show(workers, new, dry_run=options.dry_run)
    if without:
        console(error=True).print_text(f"{' '.join(without)}: no Kubernetes node is registered that could bear a hold.")
        raise typer.Exit(int(ExitCode.FAILED))


def _write(connection: Connection, workers: list[Worker], new: Hold | None) -> None:
    from vgpuctl.model.hold import hold_annotations  # noqa: PLC0415
    from vgpuctl.model.requests import PatchNode  # noqa: PLC0415

    for worker in workers:
        if worker.node is not None:
            # Only these annotations are named, so whatever else changes on the node meanwhile stays.
            connection.send(PatchNode(node=worker.node.name, annotations=hold_annotations(new)))


def _show(workers: list[Worker], new: Hold | None, *, dry_run: bool) -> None:
    from vgpuctl.basics.moments import moment  # noqa: PLC0415
    from vgpuctl.basics.phrases import folded_names  # noqa: PLC0415

    out, bearing = console(), [worker for worker in workers if worker.node is not None]
    ended = [worker.name for worker in bearing if worker.hold and not new]
    never = [worker.name for worker in bearing if not worker.hold and not new]
    if new and bearing:
        verb, end = "is" if len(bearing) == 1 else "are", new.until
        until = moment(end, datetime.now().astimezone()) if end else ""
        out.print_text(f"{folded_names(each.name for each in bearing)} {verb} {new.phrase(until)}.")
    if ended:
        out.print_text(f"{folded_names(ended)} {'is' if len(ended) == 1 else 'are'} no longer held.")
    if never:
        out.print_text(f"{folded_names(never)} {'was' if len(never) == 1 else 'were'} not held.")
    if not workers:
        out.print_text("No worker is held.")
    if dry_run:
        out.print_text("Nothing was changed.")


def _document(workers: list[Worker], new: Hold | None) -> dict[str, Any]:
    from vgpuctl.reporting.holds import hold_document  # noqa: PLC0415

    return {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "Holds",
        "workers": [
            {"name": each.name, "host": each.host or None, "hold": hold_document(new if each.node else None)}
            for each in workers
        ],
    }
