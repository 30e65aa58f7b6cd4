"""Which shift of a timetable should be in force: the one that a person ordered, else the one that has started."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.model.departure import Departure
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.orders import Orders, Override
from vgpuctl.model.starts import Start, Starts
from vgpuctl.model.timetable import Timetable

NO_TIME = timedelta()
AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The shift that should be in force. `start`: since when; what became of it is filed under this moment.

    `ends`: when another shift is due; None: never. `override`: the order of a person that decides.
    """

    shift: str
    start: datetime
    ends: datetime | None = None
    override: Override | None = None


def due(timetable: Timetable, orders: Orders, now: datetime, takes: timedelta = NO_TIME) -> Due | None:
    """Return what is due now; None outside the timetable's dates.

    `takes`: how long the next switch will take, for a shift that begins early by its own history.
    """
    override = _override(timetable, orders)
    starts = Starts(timetable)
    if override and override.active(now):
        return Due(shift=override.shift, start=override.since, ends=override.until, override=override)
    current, coming = starts.in_force(now), starts.next_change(now)
    if coming and now >= coming.at - _early(coming, takes):
        following = starts.next_change(coming.at)
        return Due(shift=coming.shift.name, start=coming.at, ends=following.at if following else None)
    if current is None:
        return None
    # The end of an override counts as a start.
    ended = override.until if override else None
    start = max(current.at, ended) if ended and ended <= now else current.at
    return Due(shift=current.shift.name, start=start, ends=coming.at if coming else None)


def begun_early(fleet: Fleet, timetable: Timetable, now: datetime) -> timedelta:
    """Return how long before its start the next shift has been begun, if it begins early by its own history.

    Once it has begun there is less to do, so it would seem to be too early again, and the switch would turn back.
    """
    start = Starts(timetable).next_change(now)
    if start is None or start.shift.timing.early != AUTO or start.at - now > timetable.announce:
        return NO_TIME
    outcomes = (each for each in fleet.outcomes.values() if each.timetable == timetable.name)
    noted = any(each.is_of(start.shift.name, start.at) for each in outcomes)
    lefts = (each for each in fleet.departures.values() if each.timetable == timetable.name)
    # A departure of an earlier night, left by a crash, says nothing about this one.
    leaving = any(each.to == start.shift.name and _since(each, start.at - timetable.announce) for each in lefts)
    return start.at - now if noted or leaving else NO_TIME


def _since(left: Departure, moment: datetime) -> bool:
    try:
        return bounded.time(left.since, "since") >= moment
    except UnreadableError:
        return False


def coming(timetable: Timetable, orders: Orders, now: datetime, takes: timedelta = NO_TIME) -> Due | None:
    """Return the next start: of another shift, or of the one that follows an override. None if nothing comes."""
    current = due(timetable, orders, now, takes)
    start = Starts(timetable).next_change(now)
    ends = current.ends if current else start.at if start else None
    following = due(timetable, orders, ends) if ends else None
    if ends and following and current and following.shift == current.shift:
        # The timetable goes on with the shift that an override had put in force, so its own next start comes.
        return coming(timetable, orders, ends) if current.override else None
    return following


def next_moment(timetable: Timetable, orders: Orders, now: datetime, takes: timedelta = NO_TIME) -> datetime | None:
    """Return when something else will be due: the next start, as early as it begins, or the end of an order."""
    coming = Starts(timetable).next_change(now)
    override, pause = _override(timetable, orders), orders.paused(now)
    moments = [
        *([coming.at - _early(coming, takes), coming.at] if coming else []),
        *(order.until for order in (override, pause, *orders.maintenance.values()) if order and order.until),
    ]
    return min((moment for moment in moments if moment > now), default=None)


def override_in_force(timetable: Timetable, orders: Orders, now: datetime) -> Override | None:
    """Return the override of this timetable; None if its shift is no longer in the file."""
    override = _override(timetable, orders)
    return override if override and override.active(now) else None


def _override(timetable: Timetable, orders: Orders) -> Override | None:
    """Return the override, also one that has ended."""
    override = orders.overrides.get(timetable.name)
    return override if override and override.shift in timetable.shifts else None


def _early(start: Start, takes: timedelta) -> timedelta:
    early = start.shift.timing.early
    return takes if early == AUTO else early or NO_TIME
