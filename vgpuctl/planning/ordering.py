"""The order that a switch by hand leaves, so that no daemon undoes a person's work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import DONE, HostReport
from vgpuctl.model.ledger import Changes, override_key
from vgpuctl.model.orders import Orders, Override
from vgpuctl.model.timetable import Timetable
from vgpuctl.planning.due import Due, due, override_in_force
from vgpuctl.planning.outcomes import arrivals

REASON = "vgpuctl switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOrder:
    """What a switch writes about itself. `override`: the order in force after it; None if it follows the timetable.

    `due`: the start that the switch serves.
    """

    timetable: Timetable
    changes: Changes
    due: Due
    override: Override | None = None

    def outcomes(self, ends: Iterable[HostReport], fleet: Fleet) -> Changes:
        """Return what is noted at the end: the hosts that have arrived. A person sees the others."""
        return arrivals(fleet, self.timetable, self.due, (host.host for host in ends if host.end == DONE))


def order_of_switch(timetable: Timetable, shift: str, orders: Orders, who: str, now: datetime) -> SwitchOrder:
    """Return the override until the next start. A switch to the scheduled shift ends an override instead."""
    key, in_force = override_key(timetable.name), override_in_force(timetable, orders, now)
    if in_force is not None and in_force.shift == shift:
        # The person keeps what somebody ordered already, and for as long.
        return SwitchOrder(timetable=timetable, changes={}, due=_due(in_force), override=in_force)
    scheduled = due(timetable, Orders(), now)
    if scheduled is not None and scheduled.shift == shift:
        ended: Changes = {key: None} if timetable.name in orders.overrides else {}
        return SwitchOrder(timetable=timetable, changes=ended, due=scheduled)
    coming = timetable.next_start(now)
    until = coming[1] if coming else None
    override = Override(timetable=timetable.name, shift=shift, who=who, since=now, until=until, reason=REASON)
    return SwitchOrder(timetable=timetable, changes={key: override}, due=_due(override), override=override)


def _due(override: Override) -> Due:
    return Due(shift=override.shift, start=override.since, ends=override.until, override=override)
