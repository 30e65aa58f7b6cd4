"""What the timetables of a month say, drawn by chance; and by our own arithmetic, which start is in force when."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from vgpuctl.model.pods import Pod
from vgpuctl.model.selectors import Selector
from vgpuctl.model.timetable import Timetable
from vgpuctl.model.timing import HoldWhile, PodSelector, Retry, Timing

#: A virtual day: a month is made of this many, with two starts each.
DAY = timedelta(hours=4)
MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SPARED = "spare-me"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One timetable's file. `at`: when each shift starts, after each midnight. `timing`: by shift."""

    name: str
    at: dict[str, timedelta]
    timing: dict[str, Timing]
    retry: Retry
    spares: bool
    version: int = 0

    def starts(self, now: datetime) -> Iterator[tuple[datetime, str]]:
        """Yield the starts around a moment, in order."""
        midnight = MIDNIGHT + ((now - MIDNIGHT) // DAY) * DAY
        for day in (-1, 0, 1, 2):
            yield from sorted((midnight + day * DAY + at, shift) for shift, at in self.at.items())

    def written(self, table: Timetable) -> Timetable:
        """Return the timetable as the product reads it."""
        shifts = {
            name: replace(shift, starts=(_cron(self.at[name]),), timing=self.timing[name])
            for name, shift in table.shifts.items()
        }
        pods = (PodSelector(selector=Selector({SPARED: "true"})),) if self.spares else ()
        return replace(
            table,
            timezone="UTC",
            shifts=shifts,
            retry=self.retry,
            hold_while=HoldWhile(pods=pods),
            announce=timedelta(minutes=10),
        )


def drawn_rules(chance: random.Random, table: Timetable, version: int = 0) -> Rules:
    first, second = table.shifts
    return Rules(
        name=table.name,
        at={first: timedelta(minutes=chance.randrange(0, 60)), second: timedelta(minutes=chance.randrange(120, 180))},
        timing={name: _timing(chance) for name in table.shifts},
        retry=Retry(tries=chance.choice([1, 2, 3]), pause=timedelta(minutes=chance.choice([1, 2, 5]))),
        spares=chance.random() < 0.5,
        version=version,
    )


def _timing(chance: random.Random) -> Timing:
    skip_after = chance.choice([None, None, timedelta(minutes=30), timedelta(minutes=50)])
    return Timing(
        early=chance.choice([None, None, timedelta(minutes=8)]),
        begin_by=chance.choice([timedelta(minutes=10), timedelta(minutes=25)]),
        skip_after=skip_after,
        min_run=chance.choice([None, None, timedelta(minutes=25)]),
    )


def _cron(at: timedelta) -> str:
    minutes = at // MINUTE
    return f"{minutes % 60} {minutes // 60}-23/{DAY // timedelta(hours=1)} * * *"


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order of a person, as the judge remembers it. `what`: a shift, or "now"."""

    since: datetime
    until: datetime | None = None
    what: str = ""

    def active(self, now: datetime) -> bool:
        return self.since <= now and (self.until is None or now < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Everything that people have said and that is in force or was. `waiting`: a person waits for the Lease."""

    rules: dict[str, Rules]
    overrides: dict[str, Ordered] = field(default_factory=dict)
    pause: Ordered | None = None
    maintenance: dict[str, Ordered] = field(default_factory=dict)
    holds: dict[str, Ordered] = field(default_factory=dict)
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class DueNow:
    shift: str
    start: datetime
    ends: datetime
    ordered: bool = False


def due_now(said: Said, rules: Rules, now: datetime) -> DueNow:
    """Return what is due: an override, else the last start; early where the file says so. The end of an override
    counts as a start."""
    order = said.overrides.get(rules.name)
    if order and order.active(now):
        return DueNow(order.what, order.since, order.until or now + DAY, ordered=True)
    starts = list(rules.starts(now))
    coming = next(start for start in starts if start[0] > now)
    begun = [start for start in starts if start[0] <= now][-1]
    after = next(start for start in starts if start[0] > coming[0])
    early = rules.timing[coming[1]].early
    assert early != "auto"
    if early and now >= coming[0] - early:
        return DueNow(coming[1], coming[0], after[0])
    ended = order.until if order and order.until and order.until <= now else None
    return DueNow(begun[1], max(begun[0], ended) if ended else begun[0], coming[0])


def is_spared(pod: Pod) -> bool:
    return pod.labels.get(SPARED) == "true" and pod.phase == "Running" and not pod.terminating
