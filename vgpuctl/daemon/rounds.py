"""One look at one timetable: what is due, what may happen on each host, and the wishes that follow. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from vgpuctl.files import Files
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.hold import Hold
from vgpuctl.model.timetable import Timetable
from vgpuctl.model.wish import Wish
from vgpuctl.operations import Preview, look_ahead
from vgpuctl.planning.due import NO_TIME, Due, begun_early, due
from vgpuctl.planning.hands import moved_by_hand
from vgpuctl.planning.holds import Blocked, with_holds
from vgpuctl.planning.outcomes import outcome_of
from vgpuctl.planning.signs import pods_failed_on
from vgpuctl.planning.verdicts import Verdict, verdicts
from vgpuctl.planning.wishes import switch_wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one look found. `hands`: the workers that somebody moved by hand, and how."""

    files: Files
    timetable: Timetable
    now: datetime
    due: Due
    verdicts: Mapping[str, Verdict]
    hands: Mapping[str, str]

    def shifts(self) -> tuple[str, ...]:
        """Return the shifts that may be put in force now: usually one; another for hosts that must go back."""
        return tuple(dict.fromkeys(verdict.shift for verdict in self.verdicts.values() if verdict.shift))

    def hosts(self, shift: str) -> frozenset[str]:
        return frozenset(host for host, verdict in self.verdicts.items() if verdict.shift == shift)


def look(fleet: Fleet, files: Files, timetable: Timetable, now: datetime, takes: timedelta = NO_TIME) -> Round | None:
    """Return what is due now; None if nothing is. `takes`: how long the coming switch takes."""
    now_due = due(timetable, fleet.orders, now, max(takes, begun_early(fleet, timetable, now)))
    if now_due is None:
        return None
    found = verdicts(fleet, timetable, now_due, now, files.sign(timetable.name))
    hands = moved_by_hand(fleet, timetable, now_due, found)
    return Round(files=files, timetable=timetable, now=now, due=now_due, verdicts=found, hands=hands)


def wish_for(fleet: Fleet, found: Round, shift: str, hosts: Iterable[str]) -> tuple[Wish, tuple[Blocked, ...]]:
    """Return the wish that puts these hosts in a shift, as far as no hold forbids it, and what holds forbid."""
    found.files.check_unique(fleet)
    whole = switch_wish(fleet, found.files.catalogue, found.timetable, shift, found.now)
    there = set(hosts)
    # A worker without a node has no place for a hold, so it leaves the wish.
    bare = {name for name in found.hands if fleet.workers[name].node is None}
    mine = whole.only(name for name in whole.workers if fleet.host_of(name) in there and name not in bare)
    kept, blocked = with_holds(_held_by_hand(fleet, found.hands), mine, found.now)
    failed_on = (outcome_of(fleet, found.timetable, host, found.due) for host in there)
    first = frozenset(uid for outcome in failed_on if outcome for uid in pods_failed_on(outcome.failed_on))
    return replace(kept, drain_first=first), blocked


def ahead(fleet: Fleet, found: Round, shift: str, hosts: Iterable[str]) -> tuple[Preview, tuple[Blocked, ...]]:
    """Return what would be done to put these hosts in a shift and what refuses it, and what holds forbid."""
    wish, blocked = wish_for(fleet, found, shift, hosts)
    return look_ahead(fleet, wish), blocked


def _held_by_hand(fleet: Fleet, hands: Mapping[str, str]) -> Fleet:
    """Return the fleet in which workers that a person moved are held, like the ones that a person holds."""
    for name, how in hands.items():
        if fleet.workers[name].hold is None:
            fleet = fleet.with_this(fleet.workers[name].with_node(hold=Hold(reason=how)))
    return fleet
