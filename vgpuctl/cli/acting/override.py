"""vgpuctl override"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgpuctl.basics.moments import moment
from vgpuctl.cli import completing
from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.ordering import (
    ReasonOption,
    checked_reason,
    order_book,
    this_second,
    when_taken_up,
)
from vgpuctl.cli.common import console, print_json, read_all_files, showing_errors
from vgpuctl.cli.options import DebugOption, ForOption, Output, OutputOption, TimetableOption, UntilOption
from vgpuctl.cli.selection import end_of_order
from vgpuctl.cli.times import ends_by
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.files import Files
    from vgpuctl.kube.order_book import OrderBook
    from vgpuctl.model.orders import Orders, Override
    from vgpuctl.model.timetable import Timetable
    from vgpuctl.settings import Flags

CLEAR = "clear"

ShiftArgument = Annotated[
    str,
    typer.Argument(
        metavar="SHIFT|clear",
        help="A shift of a timetable, such as night. `clear` ends the override.",
        show_default=False,
        autocompletion=completing.shifts,
    ),
]


@with_access
def command(
    flags: Flags,
    shift: ShiftArgument,
    lasting: ForOption = None,
    until: UntilOption = None,
    timetable: TimetableOption = None,
    reason: ReasonOption = "",
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Put another shift in force for a while, whatever the timetable says.

    Without --for and --until it ends at the timetable's next start. Starts inside it do not begin. The daemon carries
    it out; vCenter is not asked. A shift that is itself named clear cannot be ordered.

    Examples:

      vgpuctl override night --for 2h --reason demo
      vgpuctl override day --until '2026-11-21 08:00'
      vgpuctl override clear
    """
    with showing_errors(debug=debug):
        now = this_second()
        ends, why = end_of_order(until, lasting, now), checked_reason(reason)
        if shift == CLEAR and (ends or why):
            raise UsageError("`override clear` takes no --for, --until or --reason.", hint="vgpuctl override clear")
        files, book = read_all_files(flags), order_book(flags)
        if shift == CLEAR:
            change = _clear(files, book, timetable, now)
        else:
            change = _order(files.timetable_of(shift, timetable), book, _Wanted(shift, ends, why), now)
        _show(change, output, now)


@dataclass(frozen=True, slots=True)
class _Wanted:
    shift: str
    ends: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Change:
    """What was written. `before`: the override that was in force. `orders`: all orders as they were."""

    order: Override
    timetable: Timetable | None
    before: Override | None
    orders: Orders


def _order(timetable: Timetable, book: OrderBook, wanted: _Wanted, now: datetime) -> _Change:
    from vgpuctl.model.orders import Override  # noqa: PLC0415

    orders = book.read().orders
    before, scheduled = _in_force(orders, timetable.name, now), timetable.shift_at(now)
    if wanted.ends is None and scheduled and scheduled[0].name == wanted.shift:
        if before is None:
            raise UsageError(
                f"It is {wanted.shift} on {timetable.name} by the timetable already.",
                hint="To keep it through the next start, say how long: --for 2h, or --until 06:00.",
            )
        # The shift of the hour until the next start is what the timetable says without any override.
        return _end(before, timetable, book, orders, now)
    coming = timetable.next_start(now)
    order = Override(
        who=book.who(),
        since=now,
        until=wanted.ends or (coming[1].astimezone(UTC) if coming else None),
        reason=wanted.reason,
        timetable=timetable.name,
        shift=wanted.shift,
    )
    _write(book, order)
    return _Change(order, timetable, before, orders)


def _clear(files: Files, book: OrderBook, name: str | None, now: datetime) -> _Change:
    orders = book.read().orders
    found = {each: order for each, order in orders.overrides.items() if order.active(now)}
    if name is not None and name not in found:
        known = f" There is one on {', '.join(found)}." if found else ""
        raise UsageError(f"No override is in force on {name}.{known}", hint="vgpuctl status shows the orders in force.")
    if not found:
        raise UsageError("No override is in force.", hint="vgpuctl status shows the orders in force.")
    if name is None and len(found) > 1:
        raise UsageError(f"Overrides are in force on {', '.join(found)}.", hint="Choose one with --timetable NAME.")
    chosen = name or next(iter(found))
    return _end(found[chosen], files.timetables.get(chosen), book, orders, now)


def _end(order: Override, timetable: Timetable | None, book: OrderBook, orders: Orders, now: datetime) -> _Change:
    # The end of an override counts as a start, so it is written down and not deleted.
    _write(book, replace(order, until=now))
    return _Change(replace(order, until=now), timetable, order, orders)


def _write(book: OrderBook, order: Override) -> None:
    from vgpuctl.model.ledger import override_key  # noqa: PLC0415

    book.write({override_key(order.timetable): order})


def _in_force(orders: Orders, timetable: str, now: datetime) -> Override | None:
    order = orders.overrides.get(timetable)
    return order if order and order.active(now) else None


def _show(change: _Change, output: Output, now: datetime) -> None:
    if output is Output.JSON:
        print_json(_document(change))
        return
    ended = change.order.until is not None and change.order.until <= now
    text = _ended(change, now) if ended else _begun(change, now)
    console().print_text(f"{text} {when_taken_up(change.orders, now)}")


def _begun(change: _Change, now: datetime) -> str:
    order, before = change.order, change.before
    what = f"{order.shift} on {order.timetable} {ends_by(order, now)}"
    if order.until is None:
        what += ", until it is cleared: the timetable has no further start"
    replaced = f" It replaces {before.shift}, ordered by {before.who}." if before else ""
    return f"{what}.{replaced}"


def _ended(change: _Change, now: datetime) -> str:
    order, timetable = change.order, change.timetable
    ended = f"The override by {order.who}, {order.shift} on {order.timetable}, has ended."
    if timetable is None:
        return f"{ended} No file has this timetable any more."
    current, coming = timetable.shift_at(now), timetable.next_start(now)
    if current is None:
        return f"{ended} By the timetable no shift is in force."
    until = f" until {moment(coming[1], now)}" if coming else ""
    return f"{ended} By the timetable it is {current[0].name}{until}."


def _document(change: _Change) -> dict[str, Any]:
    from vgpuctl.reporting.orders import order_document  # noqa: PLC0415

    return {"apiVersion": "vgpuctl.io/v1", "kind": "Override", **order_document(change.order)}
