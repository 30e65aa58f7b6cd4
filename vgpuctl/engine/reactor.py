"""The reactor: fleet, run state and time in; requests and a new run state out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from vgpuctl.engine.blindness import stopped_if_blind_too_long, with_blind_time
from vgpuctl.engine.dispatcher import Dispatcher, Moment, Send, task_of
from vgpuctl.engine.ends import has_begun
from vgpuctl.engine.ports import BLIND_S
from vgpuctl.engine.rests import Rests, StepInputs
from vgpuctl.engine.run_state import EVERYWHERE, Attempt, Attempts, RunState
from vgpuctl.engine.throttle import queued
from vgpuctl.model.conduct import OnResumeFailed
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Wait
from vgpuctl.model.wish import Wish
from vgpuctl.planning.planner import LadderMemo, plan
from vgpuctl.planning.signs import Signs, signs_of
from vgpuctl.planning.steps import PowerOn, ScaleDown
from vgpuctl.planning.wishes import with_devices_back
from vgpuctl.reporting.causes import Cause, OtherHost, StepLate, StepRefused

#: How long a task may be refused for passing reasons (a card whose books lag, another task) before it counts as failed.
#: vSphere: `graphicsInfo` may lag. A resume that is refused for want of graphics is tried again for a while.
REFUSALS_PASS_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A wish, and the former wish to go back to if it fails. Without a former wish, a failed host stops.

    `blind_s`: for how long in all the run continues while a server is not heard.
    """

    wish: Wish
    former: Wish | None = None
    blind_s: float = BLIND_S


class Caches:
    """What one run keeps from look to look to save work. Without it, each look decides the same.

    `forward`, `back`: the plans of hosts where nothing changed, for each of the two wishes; another wish clears them.
    `rests`: steps that need no decision until something they depend on changes.
    """

    # Measured: a night of 64 hosts with 4 cards takes 2.1 s of processor time in virtual time; without `rests` 2.25 s,
    # without all three 3.3 s. At 256 hosts `rests` save 13 %.

    def __init__(self) -> None:
        self.forward, self.back, self.rests = LadderMemo(), LadderMemo(), Rests()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The result of one look. `waits`: what each due step waits for."""

    state: RunState
    plan: Plan
    waits: Mapping[StepId, Wait]
    sends: tuple[Send, ...] = ()
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed. `boots`: its suspended state cannot be resumed, so booting the worker is a way on."""

    step: Step
    host: str
    why: Cause
    boots: bool = False


def decide(goal: Goal, fleet: Fleet, state: RunState, moment: Moment, caches: Caches | None = None) -> Decision:
    """Take one look: what is still missing, what may be sent now, and what each due step waits for."""
    caches = caches or Caches()
    # Decision 0019: blind time counts against no deadline, and is bounded as a whole.
    state = stopped_if_blind_too_long(with_blind_time(state, fleet.stale, moment.now_s), fleet.stale, goal.blind_s)
    if state.going_back and goal.former is not None:
        goal = replace(goal, former=with_devices_back(fleet, goal.former))
    # vSphere: a suspended state may not resume after a host upgrade or on another host.
    if state.booting:
        former = goal.former.cold(state.booting) if goal.former else None
        goal = replace(goal, wish=goal.wish.cold(state.booting), former=former)
    wishes = _wishes(goal, fleet, state)
    todo = _plan(goal, fleet, state, wishes, caches).without(state.left)
    due = todo.ready()
    waiting = queued(fleet, goal.wish.conduct, due, state.attempts)
    due = [step for step in due if step.id not in waiting]
    state = state.due((step.id for step in due), moment.now_s)
    # Decision 0015: of 128 workers under way, a look asks only those for which something changed.
    waiting |= _resting(caches.rests, fleet, due, state, moment.now_s)
    due = [step for step in due if step.id not in waiting]
    failures = [
        failure
        for step in due
        if (failure := _failure(step, fleet, state.of(step), moment.now_s - state.due_since[step.id]))
    ]
    if failures:
        return decide(goal, fleet, _after(failures, goal, fleet, state, todo), moment, caches)
    look = Dispatcher(wishes, fleet, state, moment, caches.rests)
    if not state.stopping:
        for step in due:
            look.consider(step)
    return Decision(
        state=look.state,
        plan=todo,
        waits={**look.waits, **waiting},
        sends=tuple(look.sends),
        finished=_over(todo, fleet, wishes, state) and not look.state.in_flight,
    )


def _resting(rests: Rests, fleet: Fleet, due: Iterable[Step], state: RunState, now_s: float) -> dict[StepId, Wait]:
    """Return what each due step waits for that needs no decision at this look."""
    if state.stopping:
        return {}
    rests.begin(fleet)
    asked = (StepInputs(step, fleet.find(step.subject), state.of(step)) for step in due)
    return {each.step.id: waits for each in asked if (waits := rests.waits(each, now_s)) is not None}


def _over(todo: Plan, fleet: Fleet, wishes: Mapping[str, Wish], state: RunState) -> bool:
    """True if nothing is left to do, or nothing more can be done.

    A picture that cannot be trusted shows neither. But a person's stop does not wait for it, and neither do hosts that
    gave up.
    """
    if state.stopping:
        # vSphere: not every task can be cancelled, so a stopped run waits until vCenter is done with our VMs.
        return bool(fleet.stale) or state.leaves_tasks or not _working(fleet, wishes)
    seen_done = not todo and not fleet.stale
    return seen_done or (not any(name in fleet.workers for name in wishes) and bool(state.gave_up))


def _wishes(goal: Goal, fleet: Fleet, state: RunState) -> dict[str, Wish]:
    """Return the wish in force for each worker: the new one, or the former one if its host goes back."""
    wishes: dict[str, Wish] = {}
    for name in goal.wish.workers:
        host = fleet.workers[name].host if name in fleet.workers else ""
        if host not in state.gave_up and host not in state.held_back:
            wishes[name] = goal.former if host in state.going_back and goal.former else goal.wish
    return wishes


def _plan(goal: Goal, fleet: Fleet, state: RunState, wishes: Mapping[str, Wish], caches: Caches) -> Plan:
    """Return the plan for all workers.

    Workloads follow the new wish as long as one host does, and the former wish once all hosts go back.
    """
    there = {name: wish for name, wish in wishes.items() if name in fleet.workers}
    # Decision 0001: going back has no code path of its own. It is a plan for the former wish.
    forward = goal.wish.only(name for name, wish in there.items() if wish is goal.wish)
    back = goal.former.only(name for name, wish in there.items() if wish is goal.former) if goal.former else None
    if EVERYWHERE in state.gave_up:
        # Decision 0013: a size that cannot be given back gives up alone; the hosts stay in their shift.
        forward = replace(forward, workloads={})
    if back is not None and (forward.workers or EVERYWHERE in state.gave_up):
        back = replace(back, workloads={})
    todo = plan(fleet, forward, caches.forward)
    return todo + plan(fleet, back, caches.back) if back is not None else todo


def _working(fleet: Fleet, wishes: Iterable[str]) -> bool:
    """True if vCenter is still at work on one of our workers, or a guest is shutting down."""
    ours = (fleet.workers[name] for name in wishes if name in fleet.workers)
    return any(worker.busy_with or (worker.on and worker.shutting_down) for worker in ours)


def _after(failures: Iterable[Failure], goal: Goal, fleet: Fleet, state: RunState, todo: Plan) -> RunState:
    """Return the state after these failures.

    A failed host goes back. It gives up if nothing can be given back, or if going back failed too.
    """
    failures = list(failures)
    # Decision 0014: a mark that cannot be taken off turns no switch back.
    state = state.leave(failure.step.id for failure in failures if failure.step.optional)
    failures = [failure for failure in failures if not failure.step.optional]
    # vSphere: after a drain, a suspended state holds nothing worth keeping unless a pod asked to be frozen.
    if goal.wish.conduct.on_resume_failed is OnResumeFailed.BOOT:
        state = state.boot(failure.step.subject for failure in failures if failure.boots)
        failures = [failure for failure in failures if not failure.boots]
    failures = [each for failure in failures for each in _each_host(failure, fleet, todo)]
    signs = _signs(failures, fleet, state)
    for host, why in _concerned(failures, goal, fleet, state).items():
        # A host that may not go on alone hangs on what the failed hosts hang on.
        state = state.fail_on([host], signs.get(host) or _all(signs))
        workers = [worker.name for worker in fleet.on_host(host)]
        can = goal.former is not None and host not in state.going_back and not state.stopping
        if can and goal.former and plan(fleet, goal.former.only(workers)):
            state = state.turn_back(host, why, workers)
        elif host not in {failure.host for failure in failures}:
            state = state.hold_back([host], why)
        else:
            state = state.give_up(host, why)
        # Decision 0009: a host that fails holds back the hosts that were not begun. The fleet does not show that.
        if goal.wish.max_unavailable:
            others = _not_begun(todo, goal.wish, fleet, state)
            state = state.hold_back(others, OtherHost(host, why)).fail_on(others, state.failed_on[host])
    return state


def _signs(failures: Iterable[Failure], fleet: Fleet, state: RunState) -> dict[str, Signs]:
    """Return the signs of what each host fails on, before anything is given back."""
    found: dict[str, Signs] = {}
    spent = state.spent()
    for failure in failures:
        signs = signs_of(fleet, failure.step.hangs_on(fleet), spent)
        found[failure.host] = {**found.get(failure.host, {}), **signs}
    return found


def _all(signs: Mapping[str, Signs]) -> Signs:
    return {key: value for each in signs.values() for key, value in each.items()}


def _each_host(failure: Failure, fleet: Fleet, todo: Plan) -> list[Failure]:
    """Return the failure once for each host that it stops.

    If a workload cannot be scaled down, no host goes on. If it cannot be scaled back, all hosts have arrived.
    """
    # Decision 0013: a workload that cannot be scaled down turns all hosts back before any pod has left.
    if failure.host or not isinstance(failure.step, ScaleDown):
        return [failure]
    hosts = dict.fromkeys(worker.host for step in todo if (worker := fleet.workers.get(step.subject)))
    return [replace(failure, host=host) for host in hosts] or [failure]


def _concerned(failures: list[Failure], goal: Goal, fleet: Fleet, state: RunState) -> dict[str, Cause]:
    """Return the hosts that do not go on, and why: the failed ones, or all of them if it is all or nothing."""
    found: dict[str, Cause] = {failure.host: failure.why for failure in failures}
    if found.keys() - {EVERYWHERE} and goal.wish.conduct.all_or_nothing:
        first, why = next(iter(found.items()))
        hosts = {fleet.workers[name].host for name in goal.wish.workers if name in fleet.workers}
        others = hosts - found.keys() - state.gave_up.keys() - state.going_back.keys() - state.held_back.keys()
        found |= dict.fromkeys(sorted(others), OtherHost(first, why))
    return found


def _not_begun(todo: Plan, wish: Wish, fleet: Fleet, state: RunState) -> set[str]:
    """Return the hosts that have not begun: a rollout that failed on one host is not carried on to the next."""
    names = dict.fromkeys(step.subject for step in todo)
    asked, left = state.begun(), [worker for name in names if (worker := fleet.find(name))]
    begun = {worker.host for worker in left if has_begun(worker, wish, asked)}
    return {worker.host for worker in left} - begun - state.gave_up.keys() - state.going_back.keys()


def _failure(step: Step, fleet: Fleet, attempts: Attempts, due_for_s: float) -> Failure | None:
    """Return the failure of a due step that was refused for good, or whose time is over."""
    worker, host = fleet.find(step.subject), fleet.host_of(step.subject)
    for attempt in attempts.values():
        if why := _refused(attempt, worker, due_for_s):
            boots = isinstance(step, PowerOn) and step.resume and _by_its_own_state(attempt, worker)
            return Failure(step, host, StepRefused(step.subject, step.describe(), why), boots)
    # vSphere: a task may hang at 95 %, and a VM may wait for an answer. So every step has a deadline.
    if due_for_s >= step.deadline_s:
        waits, to_blame = step.waits_for(fleet), step.to_blame(fleet)
        return Failure(step, host, StepLate(step.subject, step.deed(), step.deadline_s, waits, to_blame))
    return None


def _refused(attempt: Attempt, worker: Worker | None, due_for_s: float) -> str:
    """Return why this request will not be tried again; "" if it may be, or was not refused."""
    out_of_patience = attempt.patience is not None and attempt.tries >= attempt.patience
    if attempt.error and (not attempt.passing or out_of_patience):
        return attempt.error
    task = task_of(attempt, worker)
    if task is None or task.fault is None or (task.passing and due_for_s < REFUSALS_PASS_S):
        return ""
    return task.message


def _by_its_own_state(attempt: Attempt, worker: Worker | None) -> bool:
    """True if the VM's own state was the reason, and not a lack of room or rights. Then booting may help."""
    task = task_of(attempt, worker)
    return task is not None and task.own
