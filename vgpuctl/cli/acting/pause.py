"""vgpuctl pause, vgpuctl unpause"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.ordering import (
    ReasonOption,
    checked_reason,
    order_book,
    this_second,
)
from vgpuctl.cli.common import console, print_json, showing_errors
from vgpuctl.cli.options import DebugOption, ForOption, Output, OutputOption, UntilOption
from vgpuctl.cli.selection import end_of_order
from vgpuctl.cli.times import ends_by
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.model.orders import Pause
    from vgpuctl.settings import Flags

NowOption = Annotated[
    bool,
    typer.Option("--now", help="Also stop a switch that runs, after its steps in flight. Else it is finished."),
]


@with_access
def command(
    flags: Flags,
    lasting: ForOption = None,
    until: UntilOption = None,
    at_once: NowOption = False,
    reason: ReasonOption = "",
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Pause the daemon: it begins nothing until the end of the pause, or until `vgpuctl unpause`.

    Commands such as `vgpuctl switch` work as always. vCenter is not asked.

    Examples:

      vgpuctl pause --until 18:00 --reason 'storage works'
      vgpuctl pause --now
    """
    with showing_errors(debug=debug):
        from vgpuctl.model.ledger import PAUSE  # noqa: PLC0415
        from vgpuctl.model.orders import Pause  # noqa: PLC0415

        now = this_second()
        ends, why = end_of_order(until, lasting, now), checked_reason(reason)
        book = order_book(flags)
        pause = Pause(who=book.who(), since=now, until=ends, reason=why, at_once=at_once)
        book.write({PAUSE: pause})
        running = "A switch that runs stops after its steps in flight" if at_once else "A switch that runs is finished"
        back = "" if ends else " To go on: vgpuctl unpause"
        _show(pause, output, f"Paused {ends_by(pause, now)}. {running}, and nothing begins.{back}")


@with_access
def unpause(flags: Flags, output: OutputOption = Output.TABLE, debug: DebugOption = False) -> None:
    """End a pause: the daemon puts the shift that is due in force again.

    Examples:

      vgpuctl unpause
    """
    with showing_errors(debug=debug):
        from vgpuctl.model.ledger import PAUSE  # noqa: PLC0415

        now, book = this_second(), order_book(flags)
        pause = book.read().orders.paused(now)
        if pause is None:
            raise UsageError("The daemon is not paused.", hint="vgpuctl status shows the orders in force.")
        book.write({PAUSE: None})
        text = f"The pause by {pause.who} has ended. The daemon puts the shift that is due in force within seconds."
        _show(pause, output, text)


def _show(pause: Pause, output: Output, text: str) -> None:
    from vgpuctl.reporting.orders import order_document  # noqa: PLC0415

    if output is Output.JSON:
        print_json({"apiVersion": "vgpuctl.io/v1", "kind": "Pause", **order_document(pause)})
    else:
        console().print_text(text)
