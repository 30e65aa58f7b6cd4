"""The orders in force, and the hosts that are parked: as documents for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.orders import Maintenance, Order, Orders, Override, Pause
from vgpuctl.model.outcome import Outcome
from vgpuctl.reporting.timetable_state import TimetableState

Document = dict[str, Any]


def order_document(order: Order) -> Document:
    """Return an order with every key; null for an absent value."""
    shared = {
        "who": order.who,
        "since": _time(order.since),
        "until": _time(order.until),
        "reason": order.reason or None,
    }
    match order:
        case Override():
            return {"timetable": order.timetable, "shift": order.shift, **shared}
        case Maintenance():
            return {"host": order.host, **shared}
        case Pause():
            return {"atOnce": order.at_once, **shared}
    return shared


def parked_document(outcome: Outcome) -> Document:
    return {
        "timetable": outcome.timetable,
        "host": outcome.host,
        "shift": outcome.shift,
        "tries": outcome.tries,
        "why": outcome.why or None,
        "code": outcome.code or None,
    }


def retry_document(outcome: Outcome) -> Document:
    """Return a host that is tried again, with every key. `again`: when at the latest, if nothing changes before."""
    return {**parked_document(outcome), "again": _time(outcome.again)}


def maintenance_in_force(orders: Orders, now: datetime) -> list[Maintenance]:
    return [order for _, order in sorted(orders.maintenance.items()) if order.active(now)]


def parked(fleet: Fleet, states: Iterable[TimetableState]) -> list[Outcome]:
    """Return the hosts that are not tried again. An outcome of an earlier start says nothing any more."""
    return [each for each in _of_due_shifts(fleet, states) if each.parked]


def retried(fleet: Fleet, states: Iterable[TimetableState]) -> list[Outcome]:
    """Return the hosts on which the switch that is due has failed, and will be tried again."""
    return [each for each in _of_due_shifts(fleet, states) if each.tries and not each.parked and not each.arrived]


def _of_due_shifts(fleet: Fleet, states: Iterable[TimetableState]) -> Iterator[Outcome]:
    due = {state.timetable.name: (state.due, state.since) for state in states}
    for each in fleet.outcomes.values():
        if (each.shift, each.start) == due.get(each.timetable):
            yield each


def _time(when: datetime | None) -> str | None:
    return when.isoformat(timespec="seconds") if when else None
