"""A plan: steps as a graph. Printed, it is the dry run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.requests import Request
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Wait


class Step(Protocol):
    """One rung of a worker's ladder, or a change of a workload.

    Whether it is done is read from the fleet, never remembered. `subject`: the worker's name, or the workload's key.
    """

    @property
    def subject(self) -> str: ...
    @property
    def id(self) -> StepId: ...
    @property
    def doing(self) -> str: ...
    @property
    def tasks(self) -> tuple[str, ...]: ...
    @property
    def lasts(self) -> bool: ...
    @property
    def disturbs(self) -> bool: ...
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
    def waits_for(self, fleet: Fleet) -> Wait: ...
    def to_blame(self, fleet: Fleet) -> str: ...
    def hangs_on(self, fleet: Fleet) -> Iterable[str]: ...
    def assumed_s(self, fleet: Fleet) -> float: ...
    def describe(self) -> str: ...
    def deed(self) -> str: ...
    def brief(self) -> str: ...


@dataclass(frozen=True)
class Plan:
    """Steps in an order in which they may be done; and, for each step, the steps it needs first."""

    steps: tuple[Step, ...] = ()
    needs: Mapping[StepId, frozenset[StepId]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps)

    @cached_property
    def ids(self) -> frozenset[StepId]:
        return frozenset(step.id for step in self.steps)

    def ready(self) -> list[Step]:
        """Return the steps that need no other step first."""
        return [step for step in self.steps if not self.needs[step.id]]

    def __add__(self, other: Plan) -> Plan:
        return Plan(self.steps + other.steps, {**self.needs, **other.needs})

    def without(self, ids: Collection[StepId]) -> Plan:
        """Return the plan without these steps. The steps that need them do not wait for them."""
        if not ids:
            return self
        steps = tuple(step for step in self.steps if step.id not in ids)
        return Plan(steps, {step.id: self.needs[step.id].difference(ids) for step in steps})

    def of(self, subject: str) -> list[Step]:
        return [step for step in self.steps if step.subject == subject]

    def next_steps(self) -> dict[str, Step]:
        """Return the first step that each worker or workload still has before it."""
        found: dict[str, Step] = {}
        for step in self.steps:
            found.setdefault(step.subject, step)
        return found

    def applied_to(self, fleet: Fleet, done: Iterable[StepId] | None = None) -> Fleet:
        """Return the fleet after the steps `done`; after all steps, if none are given."""
        ids = self.ids if done is None else set(done)
        for step in self.steps:
            if step.id in ids:
                fleet = step.applied_to(fleet)
        return fleet


@dataclass(frozen=True, slots=True)
class Remark:
    """What a person should know before a host's part begins, although it is no reason to refuse."""

    host: str
    message: str
