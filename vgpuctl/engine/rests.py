"""Due steps that need no decision for a while.

Hundreds of steps may be under way; a look asks only the ones for which something changed.
"""

from __future__ import annotations

from typing import NamedTuple

from vgpuctl.engine.run_state import Attempts
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.plan import Step
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Wait


class StepInputs(NamedTuple):
    """Everything that decides a step's requests, its answers and its wait, except budgets and workloads."""

    step: Step
    worker: Worker | None
    attempts: Attempts


class Rest(NamedTuple):
    """A step at rest. `until_s`: when time may make a difference. `waits`: what the step waits for until then."""

    inputs: StepInputs
    until_s: float
    waits: Wait


class Rests:
    """Saves looks from asking steps again; it changes no answer."""

    def __init__(self) -> None:
        self._common: object = None
        self._known: dict[StepId, Rest] = {}

    def begin(self, fleet: Fleet) -> None:
        """Begin a look.

        The fleet may have other budgets or workloads, or may not be trusted any more: then forget all rests.
        """
        common = fleet.budgets, fleet.workloads, fleet.stale
        if self._common != common:
            self._known.clear()
            self._common = common

    def waits(self, inputs: StepInputs, now_s: float) -> Wait | None:
        """Return what this step waits for; None if it must be considered."""
        rest = self._known.get(inputs.step.id)
        if rest is None or now_s >= rest.until_s or rest.inputs != inputs:
            return None
        return rest.waits

    def keep(self, rest: Rest) -> None:
        self._known[rest.inputs.step.id] = rest
