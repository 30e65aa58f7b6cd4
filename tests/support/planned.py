"""Plans as the laws look at them: the part that is not refused, and where a crash may cut it short."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import assume

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wish import Wish
from vgpuctl.operations import look_ahead

SUBSETS = 40

Case = tuple[Fleet, Wish]


def closed_subsets(some: Plan) -> Iterator[frozenset[StepId]]:
    """Sets of steps such that each one's needs are in it too: what may be done when a crash comes."""
    yield frozenset[StepId]()
    for step in itertools.islice(some, SUBSETS):
        done, todo = set[StepId](), [step.id]
        while todo:
            first = todo.pop()
            if first not in done:
                done.add(first)
                todo += some.needs[first]
        yield frozenset(done)
    prefix: set[StepId] = set()
    for step in itertools.islice(some, SUBSETS):
        prefix.add(step.id)
        yield frozenset(prefix)


def lawful(case: Case) -> tuple[Fleet, Wish, Plan]:
    """The part of the wish that is not refused."""
    fleet, wish = case
    preview = look_ahead(fleet, wish)
    assume(preview.plan)
    return fleet, preview.wish, preview.plan
