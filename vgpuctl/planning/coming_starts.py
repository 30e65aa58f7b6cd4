"""When each shift comes next: the timetable's starts, as far as no override is in the way."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vgpuctl.model.orders import Orders, Override
from vgpuctl.model.timetable import Timetable


def override_in_force(timetable: Timetable, orders: Orders, now: datetime) -> Override | None:
    """Return the override of this timetable; None if its shift is no longer in the file."""
    order = orders.overrides.get(timetable.name)
    return order if order and order.active(now) and order.shift in timetable.shifts else None


def next_starts(timetable: Timetable, orders: Orders, now: datetime) -> Mapping[str, datetime | None]:
    """Return when each shift comes next; None for a shift that does not."""
    order = override_in_force(timetable, orders, now)
    if order is None:
        return {name: timetable.next_start_of(name, now) for name in timetable.shifts}
    # Starts inside an override do not begin. Its end counts as a start.
    if order.until is None:
        return dict.fromkeys(timetable.shifts)
    found = {name: timetable.next_start_of(name, order.until) for name in timetable.shifts}
    at_end = timetable.shift_at(order.until)
    return {**found, at_end[0].name: order.until} if at_end else found
