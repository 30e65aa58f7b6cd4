"""Forecasts how long a plan will take: the longest way through its steps.

Each step takes as long as it took earlier; if it was never seen, as long as is assumed for its kind.
"""

from __future__ import annotations

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.step_id import StepId
from vgpuctl.planning.steps import PowerOn, ShutDown, Suspend
from vgpuctl.reporting.step_history import Earlier


def expected_s(step: Step, fleet: Fleet, earlier: Earlier) -> float:
    """Return how long this step may take once it is due."""
    usual_s = earlier.usual_s(step)
    return step.assumed_s(fleet) if usual_s is None else usual_s


def longest_way_s(plan: Plan, fleet: Fleet, earlier: Earlier) -> float:
    """Return the time from the first write to the last.

    Steps wait for the steps that they need; hosts wait for no other host.
    """
    ends: dict[StepId, float] = {}
    whole: dict[frozenset[StepId], float] = {}
    for step in plan:
        needs = plan.needs[step.id]
        if needs not in whole:
            whole[needs] = max((ends.get(need, 0.0) for need in needs), default=0.0)
        ends[step.id] = whole[needs] + expected_s(step, fleet, earlier)
    return max(ends.values(), default=0.0)


def asleep_s(worker: str, fleet: Fleet, earlier: Earlier) -> float:
    """Return what a sleep costs both ways: to be suspended, and to be resumed."""
    return sum(expected_s(step, fleet, earlier) for step in (Suspend(worker), PowerOn(worker)))


def off_s(worker: str, fleet: Fleet, earlier: Earlier) -> float:
    """Return what it costs to be shut down and booted. A quick power-on says nothing about how long the guest boots."""
    boots = PowerOn(worker, resume=False)
    starts_s = max(expected_s(boots, fleet, earlier), boots.assumed_s(fleet))
    return expected_s(ShutDown(worker), fleet, earlier) + starts_s
