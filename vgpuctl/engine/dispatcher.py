"""One look at the due steps: what may be sent now, and what each step waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from vgpuctl.engine.rests import Rest, Rests, StepInputs
from vgpuctl.engine.run_state import NONE, Attempt, Attempts, RequestKey, RunState
from vgpuctl.model.fleet import Fleet, Task, Worker
from vgpuctl.model.plan import Step
from vgpuctl.model.pods import Budget
from vgpuctl.model.record import ASLEEP
from vgpuctl.model.requests import DeletePod, Evict, PowerOffVm, Request
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import may_start
from vgpuctl.planning.checks.admission import full_for_now
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.pods.drain import budgets_to_pay
from vgpuctl.planning.steps import PowerOn, ShutDown, Suspend, Uncordon

#: How long a budget may take to show an eviction that it allowed.
BUDGET_LAG_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A request to send now, under the key that its answer is filed under. `patient`: no other step waits for it."""

    key: RequestKey
    request: Request
    patient: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The time of a look: on the monotonic clock that measures, and on the clock that people read."""

    now_s: float
    utc: str


class Dispatcher:
    """Collects what one look sends. It spends budgets as it goes, so that two pods never share one allowance."""

    def __init__(self, wishes: Mapping[str, Wish], fleet: Fleet, state: RunState, moment: Moment, rests: Rests) -> None:
        self.wishes, self.fleet, self.moment = wishes, fleet, moment
        self._state, self._attempts, self._rests = state, dict(state.attempts), rests
        self.sends: list[Send] = []
        self.waits: dict[StepId, Wait] = {}

    @property
    def state(self) -> RunState:
        """Return the former state, with what was sent since."""
        return replace(self._state, attempts=self._attempts)

    @cached_property
    def _out(self) -> dict[str, set[StepId]]:
        return self._state.out()

    @cached_property
    def _left(self) -> dict[tuple[str, str], int]:
        """Return what each budget allows, less the evictions that it cannot show yet."""
        # An eviction without an answer may have been allowed, so it is taken as spent whatever the budget shows.
        left = {_budget_key(budget): budget.allowed for budget in self.fleet.budgets}
        versions = {_budget_key(budget): budget.version for budget in self.fleet.budgets}
        for attempt in self._state.all_attempts():
            for key, version in attempt.spends.items() if not attempt.error else ():
                if key in left and self._unseen(attempt, as_then=version == versions[key]):
                    left[key] -= 1
        return left

    def _unseen(self, attempt: Attempt, *, as_then: bool) -> bool:
        """True if the budget cannot show this eviction yet.

        The eviction has no answer, or it was answered a moment ago and the budget still looks `as_then`.
        """
        return attempt.answered_s is None or (as_then and self.moment.now_s - attempt.answered_s < BUDGET_LAG_S)

    def _spends(self, request: Request) -> dict[tuple[str, str], str]:
        if not isinstance(request, Evict):
            return {}
        return {_budget_key(budget): budget.version for budget in budgets_to_pay(self.fleet, request.pod)}

    def consider(self, step: Step) -> None:
        """Send what this due step asks for and may ask now; remember what it waits for."""
        worker = self.fleet.find(step.subject)
        # vSphere: a second task on a VM ends with TaskInProgress, so a running one is waited for.
        if busy := self._busy(worker):
            self.waits[step.id] = busy
            self._let_rest(step, worker)
            return
        why_not = self._why_not(step, worker)
        self.waits[step.id] = why_not or step.waits_for(self.fleet)
        if why_not:
            return
        requests = self._requests(step)
        for request in requests:
            self._consider(step, request)
        if all(self._is_settled(step, request) for request in requests):
            self._let_rest(step, worker)

    def _sent(self, step: StepId) -> Attempts:
        """Return what was asked for this step, in this look too."""
        return self._attempts.get(step, NONE)

    def _due_since(self, step: Step) -> float:
        return self._state.due_since.get(step.id, self.moment.now_s)

    def _requests(self, step: Step) -> tuple[Request, ...]:
        """Return the step's requests, or none while its only request is out.

        A request that would not be sent is not made.
        """
        if self.moment.now_s - self._due_since(step) >= step.overdue_after_s and (late := step.overdue(self.fleet)):
            return late
        only = self._sent(step.id).get("")
        return () if only and only.answered_s is None else step.requests(self.fleet, self.moment.utc)

    def _is_settled(self, step: Step, request: Request) -> bool:
        """True if this request needs no decision now.

        It is out, or it was taken and its effect is awaited, or a budget that allows nothing holds it.
        """
        attempt = self._sent(step.id).get(_part(request))
        if attempt is not None:
            return attempt.answered_s is None or self.moment.now_s < attempt.answered_s + step.effect_s
        return isinstance(request, Evict) and any(b.allowed <= 0 for b in budgets_to_pay(self.fleet, request.pod))

    def _let_rest(self, step: Step, worker: Worker | None) -> None:
        """Let the step rest until time makes a difference: an effect does not show, or the step takes too long.

        A refused request is tried again soon, so its step does not rest.
        """
        attempts, since_s = self._sent(step.id), self._due_since(step)
        if any(failed(attempt, worker) for attempt in attempts.values()):
            return
        effects = (each.answered_s + step.effect_s for each in attempts.values() if each.answered_s is not None)
        times = (since_s + step.deadline_s, since_s + step.overdue_after_s, *effects)
        until_s = min(time_s for time_s in times if time_s > self.moment.now_s)
        self._rests.keep(Rest(StepInputs(step, worker, attempts), until_s, self.waits[step.id]))

    def _busy(self, worker: Worker | None) -> Wait | None:
        """Return why nothing may be asked for this worker now, whatever the step; None if something may."""
        if unheard := self.fleet.unheard():
            return Wait.of(Reason.UNHEARD, unheard)
        if worker is None:
            return None
        # Decision 0017: a worker in doubt is refused before a plan, and held in the middle of one.
        if worker.doubts:
            return Wait.of(Reason.DOUBT, worker.doubts[0])
        return Wait.of(Reason.VCENTER_TASK, worker.busy_with.kind) if worker.busy_with else None

    def _why_not(self, step: Step, worker: Worker | None) -> Wait | None:
        if self._asked_otherwise(step):
            return Wait(Reason.EARLIER_REQUEST)
        if worker is None:
            return None
        # On the way back, a suspend without an answer may still be carried out. Its worker stays cordoned.
        if isinstance(step, Uncordon) and self._goes_down(worker):
            return Wait(Reason.ABOUT_TO_STOP)
        if isinstance(step, PowerOn):
            wish = self.wishes[worker.name]
            if full_for_now(self.fleet, wish, worker):
                return Wait(Reason.ADMISSION)
            return may_start(self.fleet, wish, worker, self._starting(worker))
        return None

    def _goes_down(self, worker: Worker) -> bool:
        """True if the worker is about to be off although its host goes back.

        Its guest shuts down, as vCenter says, or it was asked to stop and has not slept since. If vCenter shows no sign
        of a stop for some time, the worker will not stop any more.
        """
        # vSphere: a guest that was asked to shut down cannot be asked to stay up.
        if worker.on and worker.shutting_down:
            return True
        record = worker.node.record if worker.node else None
        if not worker.on or record is None or record.state == ASLEEP:
            return False
        return self._asked(worker, ShutDown) or self._asked(worker, Suspend)

    def _asked(self, worker: Worker, kind: type[ShutDown | Suspend]) -> bool:
        """True if this was asked for and shows no effect yet: neither a task nor its end."""
        asked = self._sent(kind.of(worker.name)).get("")
        if asked is None or (asked.error and not asked.passing) or task_of(asked, worker) is not None:
            return False
        since_s = asked.sent_s if asked.answered_s is None else asked.answered_s
        return self.moment.now_s - since_s < kind.effect_s

    def _asked_otherwise(self, step: Step) -> bool:
        """True if a request of another step for the same worker is still without an answer."""
        return bool(self._out.get(step.subject, set[StepId]()) - {step.id})

    def _starting(self, worker: Worker) -> frozenset[str]:
        """Return the other workers of this host whose start is out and not visible yet.

        The start may be ours or another program's.
        """
        # vSphere: vCenter chooses the card of each start, and `graphicsInfo` may show it late.
        others = (other for other in self.fleet.on_host(worker.host) if other.name != worker.name and not other.on)
        return frozenset(other.name for other in others if self._start_is_out(other))

    def _start_is_out(self, worker: Worker) -> bool:
        if worker.busy_with is not None:
            return worker.busy_with.kind in PowerOn.tasks
        attempt = self._sent(PowerOn.of(worker.name)).get("")
        return attempt is not None and not failed(attempt, worker)

    def _consider(self, step: Step, request: Request) -> None:
        part, attempts = _part(request), self._sent(step.id)
        before = attempts.get(part)
        if before is not None and not self._may_send_again(before, step):
            self.waits[step.id] = _asked_to_wait(before) or self.waits[step.id]
            return
        if not self._budget_allows(request):
            return
        # The laws are checked here, just before the write, against the newest picture (architecture.md).
        if why := broken_by(request, self.fleet):
            self.waits[step.id] = Wait.of(Reason.LAW, why)
            return
        tries = before.tries + 1 if before else 1
        now = Attempt(sent_s=self.moment.now_s, tries=tries, spends=self._spends(request))
        self._attempts[step.id] = {**attempts, part: now}
        self.sends.append(Send(key=RequestKey(step.id, part), request=request, patient=step.patient))

    def _may_send_again(self, attempt: Attempt, step: Step) -> bool:
        """True if the request may be repeated: never while it is out, nor before its effect was looked for."""
        if attempt.answered_s is None:
            return False
        # Going back asks for the former vGPUs, so the effect of a request that asked for the new ones is not awaited.
        worker = self.fleet.find(step.subject)
        if attempt.of_former_plan and (task := task_of(attempt, worker)) and not task.running:
            return True
        # pyVmomi repeats a call after a socket error, so a *_Task may run twice: its effect is looked for first.
        # Kubernetes: a server that refuses with 429 says in Retry-After how long to wait (10 s for a stale budget).
        again = failed(attempt, worker)
        pause = max(min(0.25 * 2 ** min(attempt.tries, 5), 5.0), attempt.after_s) if again else step.effect_s
        return self.moment.now_s - attempt.answered_s >= pause

    def _budget_allows(self, request: Request) -> bool:
        if not isinstance(request, Evict):
            return True
        # Two evictions of one look must not share an allowance: the API server would refuse the second (429).
        keys = [_budget_key(budget) for budget in budgets_to_pay(self.fleet, request.pod)]
        if any(self._left[key] <= 0 for key in keys):
            return False
        for key in keys:
            self._left[key] -= 1
        return True


def _asked_to_wait(attempt: Attempt) -> Wait | None:
    return Wait.of(Reason.THROTTLED, f"{attempt.after_s:.0f}") if attempt.error and attempt.after_s else None


def task_of(attempt: Attempt, worker: Worker | None) -> Task | None:
    """Return the vCenter task that this request became, as the fleet shows it."""
    tasks = worker.tasks if worker else ()
    return next((task for task in tasks if attempt.task and task.key == attempt.task), None)


def failed(attempt: Attempt, worker: Worker | None) -> bool:
    task = task_of(attempt, worker)
    return bool(attempt.error) or (task is not None and task.fault is not None)


def _part(request: Request) -> str:
    """Return what distinguishes this request from the other requests of its step."""
    match request:
        # kubernetes#138229: a drain evicted the wrong pod after its name was reused, so pods are known by UID.
        case Evict(pod=pod):
            return pod.uid
        case DeletePod(pod=pod):
            return f"delete {pod.uid}"
        case PowerOffVm():
            return "power-off"
    return ""


def _budget_key(budget: Budget) -> tuple[str, str]:
    return budget.namespace, budget.name
