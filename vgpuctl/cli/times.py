"""Times of day for people, in local time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from vgpuctl.basics.moments import moment

if TYPE_CHECKING:
    from vgpuctl.model.orders import Order


def clock(at: datetime) -> str:
    return at.strftime("%H:%M:%S")


def ends_by(order: Order, now: datetime) -> str:
    """Return `until 06:00, by anna`, or `by anna` for an order without an end."""
    return f"until {moment(order.until, now)}, by {order.who}" if order.until else f"by {order.who}"
