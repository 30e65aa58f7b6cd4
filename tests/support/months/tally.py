"""What months have really executed and judged, and the floors below which that is too little to show anything."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field

from tests.support.months.happenings import KINDS
from tests.support.months.month import month

#: On a virtual day at least. Measured over 26 months of 4 days: 5.6 happenings, 45 writes, 3.5 beginnings and 340
#: judged minutes of a host.
A_DAY = {"happenings": 3.0, "writes": 20.0, "beginnings": 1.5, "host minutes judged": 150.0}
#: Each kind of happening once on so many days, if there are enough. In 30 days, unpark and unpause did not come once.
DAYS_FOR_EACH_KIND = 200.0
ENOUGH_DAYS = 600.0
#: What follows from happenings: it must come about, too.
FOLLOWS = ("crashes in a switch", "handovers", "hands to be left alone", "retries", "evictions of a retry")


@dataclass
class Tally:
    """`bad`: what was wrong, by seed."""

    days: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    bad: dict[int, list[str]] = field(default_factory=dict)

    def play(self, seed: int, days: int) -> None:
        """An error of the product's is as bad as a broken rule."""
        self.days += days
        try:
            lived = month(seed, days)
        except Exception:
            self.bad[seed] = [traceback.format_exc(limit=-4)]
            return
        self.counts += lived.counts + lived.referee.counts
        self.counts["happenings"] += sum(lived.counts[kind] for kind in KINDS)
        if lived.broken:
            self.bad[seed] = lived.broken

    def add(self, other: Tally) -> None:
        self.days += other.days
        self.counts += other.counts
        self.bad |= other.bad

    def missing(self, share: float = 1.0) -> list[str]:
        """Return what was executed less than the floors, or than a share of them."""
        floors = {name: a_day * self.days * share for name, a_day in A_DAY.items()}
        if self.days >= ENOUGH_DAYS:
            floors |= dict.fromkeys((*KINDS, *FOLLOWS), self.days * share / DAYS_FOR_EACH_KIND)
        return [
            f"{name}: {self.counts[name]}, and not {floor:.0f}"
            for name, floor in floors.items()
            if self.counts[name] < floor
        ]

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
