"""What people have ordered: overrides, a pause, hosts under maintenance. The cluster keeps it, for every instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order of a person. `who`: the name by which the API server knows the person.

    `until`: when it expires by itself; None: when it is taken back.
    """

    who: str
    since: datetime
    until: datetime | None = None
    reason: str = ""

    def active(self, now: datetime) -> bool:
        return self.since <= now and (self.until is None or now < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override(Order):
    """A shift that is in force instead of the scheduled one. Its end counts as a start."""

    timetable: str
    shift: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(Order):
    """The daemon begins nothing. `at_once`: a running switch stops safely; else it is finished."""

    at_once: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance(Order):
    """Nothing of this host moves: its workers are held until a person says otherwise."""

    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """All orders, expired ones too: the end of an override counts as a start, so it is kept.

    `overrides`: by timetable. `maintenance`: by host.
    """

    overrides: Mapping[str, Override] = field(default_factory=dict)
    pause: Pause | None = None
    maintenance: Mapping[str, Maintenance] = field(default_factory=dict)

    def paused(self, now: datetime) -> Pause | None:
        """Return the pause in force."""
        return self.pause if self.pause and self.pause.active(now) else None

    def maintained(self, now: datetime) -> dict[str, Maintenance]:
        """Return the orders of maintenance in force, by host."""
        return {host: order for host, order in self.maintenance.items() if order.active(now)}
