"""A plan: steps as a graph. Its print is the dry run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.requests import Request


class Step(Protocol):
    """One rung of a worker's ladder, or what is done to a workload. That it is done is seen in the fleet, never
    remembered. `worker`: the name of the one, or the key of the other."""

    @property
    def worker(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def deadline_s(self) -> float: ...
    @property
    def effect_s(self) -> float: ...
    @property
    def overdue_after_s(self) -> float: ...
    @property
    def optional(self) -> bool: ...
    @property
    def patient(self) -> bool: ...
    def done_in(self, fleet: Fleet) -> bool: ...
    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]: ...
    def overdue(self, fleet: Fleet) -> tuple[Request, ...]: ...
    def applied_to(self, fleet: Fleet) -> Fleet: ...
    def waits_for(self, fleet: Fleet) -> str: ...
    def failed_for(self, fleet: Fleet) -> str: ...
    def describe(self) -> str: ...


@dataclass(frozen=True)
class Plan:
    """Steps in an order in which they may be done, and for each the names of the steps it needs first."""

    steps: tuple[Step, ...] = ()
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(step.name for step in self.steps)

    def ready(self) -> list[Step]:
        """The steps that need no other step first."""
        return [step for step in self.steps if not self.needs[step.name]]

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.steps + other.steps, {**self.needs, **other.needs})

    def without(self, names: Collection[str]) -> Plan:
        """What needs these does not wait for them."""
        if not names:
            return self
        steps = tuple(step for step in self.steps if step.name not in names)
        return Plan(steps, {step.name: self.needs[step.name].difference(names) for step in steps})

    def of(self, worker: str) -> list[Step]:
        return [step for step in self.steps if step.worker == worker]

    def next_steps(self) -> dict[str, Step]:
        """By worker, the first step that each still has before it."""
        found: dict[str, Step] = {}
        for step in self.steps:
            found.setdefault(step.worker, step)
        return found

    def applied_to(self, fleet: Fleet, done: Iterable[str] | None = None) -> Fleet:
        """What the world looks like after the steps named `done` (after all, where none are named)."""
        names = self.names if done is None else set(done)
        for step in self.steps:
            if step.name in names:
                fleet = step.applied_to(fleet)
        return fleet


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person should know before a host's part begins, although nothing is refused for it."""

    host: str
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a host's part of a wish cannot end well, and what would help."""

    host: str
    message: str
    details: tuple[str, ...] = ()
    hint: str = ""
