"""How long a plan will take, as far as can be said before it begins: what was seen earlier, else assumptions by kind of
step; the longest way."""

from __future__ import annotations

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan, Step
from vgpuctl.planning.drain import grace_s, pods_to_move
from vgpuctl.planning.hindsight import Earlier
from vgpuctl.planning.steps import Attach, Drain, PowerOn, ShutDown, Suspend, WaitBack, WaitDetached

#: Assumed of a datastore: what a suspend writes and a resume reads.
MIB_A_SECOND = 500
MARK_S = 0.5
SHUT_DOWN_S = 30.0
CHANGE_S = 5.0
DETACH_S = 10.0
BOOT_S = 60.0
STACK_S = 60.0


def expected_s(step: Step, fleet: Fleet, earlier: Earlier) -> float:
    """How long this step may take once it is due."""
    usual_s = earlier.usual_s(step)
    return _assumed_s(step, fleet) if usual_s is None else usual_s


def _assumed_s(step: Step, fleet: Fleet) -> float:
    worker = fleet.find(step.worker)
    state_s = worker.memory_mib / MIB_A_SECOND if worker else 0.0
    match step:
        case Drain():
            return _drain_s(step, fleet)
        case Suspend():
            return CHANGE_S + state_s
        case PowerOn(resume=resume):
            return CHANGE_S + (state_s if resume else BOOT_S)
    return _ALWAYS.get(type(step), MARK_S)


_ALWAYS: dict[type, float] = {ShutDown: SHUT_DOWN_S, Attach: CHANGE_S, WaitBack: STACK_S, WaitDetached: DETACH_S}


def _drain_s(step: Drain, fleet: Fleet) -> float:
    """The pods' grace, as a rule; what budgets add nobody knows."""
    pods = pods_to_move(fleet.worker(step.worker), step.options)
    return min(step.within_s, max((grace_s(pod, step.options) for pod in pods), default=0))


def longest_way_s(plan: Plan, fleet: Fleet, earlier: Earlier) -> float:
    """From the first write to the last: steps wait for those that they need, hosts for nobody."""
    ends: dict[str, float] = {}
    whole: dict[frozenset[str], float] = {}
    for step in plan:
        needs = plan.needs[step.name]
        if needs not in whole:
            whole[needs] = max((ends.get(name, 0.0) for name in needs), default=0.0)
        ends[step.name] = whole[needs] + expected_s(step, fleet, earlier)
    return max(ends.values(), default=0.0)


def asleep_s(worker: str, fleet: Fleet, earlier: Earlier) -> float:
    """What a sleep costs on both ways: to be suspended, and to be resumed."""
    return sum(expected_s(step, fleet, earlier) for step in (Suspend(worker), PowerOn(worker)))


def off_s(worker: str, fleet: Fleet, earlier: Earlier) -> float:
    """What it costs to be shut down and booted. That a power-on was quick tells nothing of its guest's boot."""
    boots = PowerOn(worker, resume=False)
    starts_s = max(expected_s(boots, fleet, earlier), _assumed_s(boots, fleet))
    return expected_s(ShutDown(worker), fleet, earlier) + starts_s
