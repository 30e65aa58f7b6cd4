"""Plans as the laws look at them: the part that is not refused, and where a crash may cut it short."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import assume

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan
from vgpuctl.model.wish import Wish
from vgpuctl.operations import look_ahead

SUBSETS = 40

Case = tuple[Fleet, Wish]


def closed_subsets(some: Plan) -> Iterator[frozenset[str]]:
    """Sets of steps such that each one's needs are in it too: what may be done when a crash comes."""
    yield frozenset()
    for step in itertools.islice(some, SUBSETS):
        done, todo = set(), [step.name]
        while todo:
            name = todo.pop()
            if name not in done:
                done.add(name)
                todo += some.needs[name]
        yield frozenset(done)
    prefix: set[str] = set()
    for step in itertools.islice(some, SUBSETS):
        prefix.add(step.name)
        yield frozenset(prefix)


def lawful(case: Case) -> tuple[Fleet, Wish, Plan]:
    """The part of the wish that is not refused."""
    fleet, wish = case
    prospect = look_ahead(fleet, wish)
    assume(prospect.plan)
    return fleet, prospect.wish, prospect.plan
