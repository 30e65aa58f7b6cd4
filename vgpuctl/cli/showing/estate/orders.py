"""The orders of people that are in force, and the hosts that are parked or wait: a line each."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from vgpuctl.basics.moments import moment
from vgpuctl.basics.phrases import count, folded_names
from vgpuctl.cli.sanitize import one_line
from vgpuctl.cli.showing.estate.layout import paragraph
from vgpuctl.cli.times import ends_by
from vgpuctl.model.orders import Maintenance, Order
from vgpuctl.model.outcome import Outcome
from vgpuctl.reporting.situation import Situation
from vgpuctl.reporting.verdicts import sentences


def order_lines(situation: Situation, width: int) -> Iterator[Text]:
    for text in (*_orders(situation), *_parked(situation), *_hindered(situation)):
        yield from paragraph(one_line(text), width, "yellow")


def _orders(situation: Situation) -> Iterator[str]:
    now = situation.now
    for state in situation.states:
        if order := state.override:
            yield f"override: {order.shift} on {order.timetable} {ends_by(order, now)}{_why(order)}"
    if pause := situation.pause:
        yield f"paused {ends_by(pause, now)}{_why(pause)}"
    alike: dict[tuple[object, ...], list[Maintenance]] = {}
    for each in situation.maintenance:
        alike.setdefault((each.who, each.since, each.until, each.reason), []).append(each)
    for group in alike.values():
        first, names = group[0], folded_names(each.host for each in group)
        yield f"{names} under maintenance since {moment(first.since, now)}, {ends_by(first, now)}{_why(first)}"


def _parked(situation: Situation) -> Iterator[str]:
    alike: dict[tuple[object, ...], list[Outcome]] = {}
    for each in situation.parked:
        alike.setdefault((each.timetable, each.shift, each.tries, each.why, each.code), []).append(each)
    for group in alike.values():
        first, names = group[0], folded_names(each.host for each in group)
        code = f" ({first.code})" if first.code else ""
        why = f": {first.why.rstrip('.')}{code}" if first.why else code
        verb = "are" if len(group) > 1 else "is"
        tries = f"{first.shift} failed {count(first.tries, 'time')}"
        yield f"{names} {verb} parked: {tries}{why}. vgpuctl unpark {names}"


def _hindered(situation: Situation) -> Iterator[str]:
    for each in situation.hindered:
        for _, text in sentences(situation.fleet, each.timetable, each.due, each.verdicts, situation.now):
            yield text


def _why(order: Order) -> str:
    return f" ({order.reason})" if order.reason else ""
