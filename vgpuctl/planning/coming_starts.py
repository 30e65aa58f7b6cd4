"""When each shift comes next: the timetable's starts, as far as no override is in the way."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from vgpuctl.model.orders import Orders
from vgpuctl.model.timetable import Timetable
from vgpuctl.planning.due import override_in_force


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
