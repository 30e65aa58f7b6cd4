"""vgpuctl unpark"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.basics.phrases import count
from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.ordering import hosts_meant, order_book, this_second, when_taken_up
from vgpuctl.cli.common import console, print_json, read_all_files, showing_errors
from vgpuctl.cli.options import DebugOption, Output, OutputOption, TimetableOption
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.files import Files
    from vgpuctl.model.ledger import Ledger
    from vgpuctl.model.outcome import Outcome
    from vgpuctl.settings import Flags

HostsArgument = Annotated[
    list[str], typer.Argument(metavar="HOST", help="Names, ranges such as esx-[1-4], or globs.", show_default=False)
]


@with_access
def command(
    flags: Flags,
    hosts: HostsArgument,
    timetable: TimetableOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Try hosts again that the daemon has parked after several failures.

    It tries them by itself once what they failed on changes, and at the next start. vCenter is not asked.

    Examples:

      vgpuctl unpark esx-1
      vgpuctl unpark 'esx-*' --timetable day-night
    """
    with showing_errors(debug=debug):
        from vgpuctl.model.ledger import outcome_key  # noqa: PLC0415

        now, files, book = this_second(), read_all_files(flags), order_book(flags)
        if timetable is not None and timetable not in files.timetables:
            known = ", ".join(files.timetables)
            raise UsageError(f"No timetable is called {timetable}.", hint=f"Known: {known}.")
        ledger = book.read()
        stuck = [each for each in _parked(ledger, files, now) if timetable in {None, each.timetable}]
        chosen = hosts_meant(hosts, {each.host for each in stuck}, "parked", "Parked")
        freed = [each for each in stuck if each.host in chosen]
        book.write({outcome_key(*each.key): None for each in freed})
        _show(freed, output, when_taken_up(ledger.orders, now))


def _parked(ledger: Ledger, files: Files, now: datetime) -> list[Outcome]:
    from vgpuctl.model.fleet import Fleet  # noqa: PLC0415
    from vgpuctl.reporting.orders import parked  # noqa: PLC0415
    from vgpuctl.reporting.timetable_state import state_of  # noqa: PLC0415

    known = Fleet().with_ledger(ledger)
    return parked(known, [state_of(known, timetable, now) for timetable in files.timetables.values()])


def _show(freed: Iterable[Outcome], output: Output, soon: str) -> None:
    from vgpuctl.reporting.orders import parked_document  # noqa: PLC0415

    if output is Output.JSON:
        items = [parked_document(each) for each in freed]
        print_json({"apiVersion": "vgpuctl.io/v1", "kind": "UnparkedList", "items": items})
        return
    out = console()
    for each in freed:
        why = f": {each.why.rstrip('.')}" if each.why else ""
        code = f" ({each.code})" if each.code else ""
        failed = f"had failed {count(each.tries, 'time')}{why}{code}"
        out.print_text(f"{each.host} is no longer parked. {each.shift} on {each.timetable} {failed}.")
    out.print_text(soon)
