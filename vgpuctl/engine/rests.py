"""Due steps of which nothing is to be decided for a while: of hundreds that are under way, a look asks only those for
which something changed."""

from __future__ import annotations

from typing import NamedTuple

from vgpuctl.engine.run_state import Attempts
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.plan import Step
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Wait


class Asked(NamedTuple):
    """What a step's requests, its answers, and what it waits for, are read from; budgets and workloads aside."""

    step: Step
    worker: Worker | None
    attempts: Attempts


class Rest(NamedTuple):
    """`until_s`: when its time may make a difference. `waits`: what it waits for until then."""

    asked: Asked
    until_s: float
    waits: Wait


class Rests:
    """It spares looks their questions and changes no answer."""

    def __init__(self) -> None:
        self._common: object = None
        self._known: dict[StepId, Rest] = {}

    def begin(self, fleet: Fleet) -> None:
        """A look, at a fleet that may have other budgets or workloads, or not be trusted any more."""
        common = fleet.budgets, fleet.workloads, fleet.stale
        if self._common != common:
            self._known.clear()
            self._common = common

    def waits(self, asked: Asked, now_s: float) -> Wait | None:
        """What this step waits for; None where it must be considered."""
        rest = self._known.get(asked.step.id)
        if rest is None or now_s >= rest.until_s or rest.asked != asked:
            return None
        return rest.waits

    def keep(self, rest: Rest) -> None:
        self._known[rest.asked.step.id] = rest
