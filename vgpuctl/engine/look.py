"""One look at the due steps: what may be sent now, and what each step waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vgpuctl.engine.memory import Attempt, Memory
from vgpuctl.model.fleet import Fleet, Task, Worker
from vgpuctl.model.kept import Kept
from vgpuctl.model.plan import Step
from vgpuctl.model.pods import Budget
from vgpuctl.model.record import ASLEEP
from vgpuctl.model.requests import DeletePod, Evict, PowerOffVm, Request
from vgpuctl.model.wish import Wish
from vgpuctl.planning.admission import full_for_now
from vgpuctl.planning.drain import budgets_to_pay
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.releases import may_start
from vgpuctl.planning.steps import PowerOn, ShutDown, Suspend, Uncordon

#: How long a budget may take to show an eviction that it allowed.
BUDGET_LAG_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A request to send now, under the key by which its answer is remembered. `patient`: nobody waits for it."""

    key: str
    request: Request
    patient: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a look is taken: on the clock that measures, and on the one that people read."""

    now_s: float
    utc: str


class Words:
    """What each step waits for. It depends on its worker, on budgets and on workloads, and is asked for again only when
    one of them has changed."""

    def __init__(self) -> None:
        self._kept: Kept[str] = Kept()

    def of(self, step: Step, fleet: Fleet) -> str:
        asked = step, fleet.find(step.worker), fleet.budgets, fleet.workloads
        return self._kept.of(step.name, asked, lambda: step.waits_for(fleet))


class Look:
    """Collects what one look sends; budgets are spent as it goes, so that two pods never share one allowance."""

    def __init__(
        self, wishes: Mapping[str, Wish], fleet: Fleet, memory: Memory, moment: Moment, words: Words | None = None
    ) -> None:
        self.wishes, self.fleet, self.moment = wishes, fleet, moment
        self._words = words or Words()
        self._memory, self._attempts = memory, dict(memory.attempts)
        self._out = memory.out()
        self.sends: list[Send] = []
        self.waits: dict[str, str] = {}
        self.left = {_budget_key(budget): budget.allowed - self._unseen(budget) for budget in fleet.budgets}

    @property
    def memory(self) -> Memory:
        """The former memory, and what was sent since."""
        return replace(self._memory, attempts=self._attempts)

    def _unseen(self, budget: Budget) -> int:
        """Evictions that this budget cannot show yet: without an answer, or answered and it looks as before."""
        key, now_s = _budget_key(budget), self.moment.now_s
        sent = (attempt for attempt in self._attempts.values() if key in attempt.spends and not attempt.error)
        return sum(
            attempt.answered_s is None
            or (attempt.spends[key] == budget.version and now_s - attempt.answered_s < BUDGET_LAG_S)
            for attempt in sent
        )

    def _spends(self, request: Request) -> dict[tuple[str, str], str]:
        if not isinstance(request, Evict):
            return {}
        return {_budget_key(budget): budget.version for budget in budgets_to_pay(self.fleet, request.pod)}

    def consider(self, step: Step) -> None:
        """Send what this due step asks for and may ask now; remember what it waits for."""
        why_not = self._why_not(step)
        self.waits[step.name] = why_not or self._words.of(step, self.fleet)
        if why_not:
            return
        due_for_s = self.moment.now_s - self._memory.due_since.get(step.name, self.moment.now_s)
        for request in step.overdue(self.fleet, due_for_s) or self._requests(step):
            self._consider(step, request)

    def _requests(self, step: Step) -> tuple[Request, ...]:
        """None while the one that most steps have is out: it need not be made again to be left unsent."""
        only = self._attempts.get(f"{step.name}/")
        return () if only and only.answered_s is None else step.requests(self.fleet, self.moment.utc)

    def _why_not(self, step: Step) -> str:
        worker = self.fleet.find(step.worker)
        if self.fleet.stale:
            return f"{' and '.join(self.fleet.stale)} cannot be heard"
        if worker is not None and worker.doubts:
            return worker.doubts[0]
        if worker is not None and worker.busy_with is not None:
            return f"vCenter is at work on it ({worker.busy_with.kind})"
        if self._asked_otherwise(step):
            return "an earlier request is still out"
        return self._why_not_yet(step, worker) if worker is not None else ""

    def _why_not_yet(self, step: Step, worker: Worker) -> str:
        if isinstance(step, Uncordon) and self._goes_down(worker):
            return "it is about to stop"
        if isinstance(step, PowerOn):
            wish = self.wishes[worker.name]
            if full_for_now(self.fleet, wish, worker):
                return "waits until others in its cluster have left: HA admission control counts them"
            return may_start(self.fleet, wish, worker, self._starting(worker))
        return ""

    def _goes_down(self, worker: Worker) -> bool:
        """We go back, but it will be off: its guest shuts down by vCenter's word, or it was asked to stop and has not
        slept since. One of which vCenter does not say so, and that takes no notice for so long, will not any more.
        """
        if worker.on and worker.shutting_down:
            return True
        record = worker.node.record if worker.node else None
        if not worker.on or record is None or record.state == ASLEEP:
            return False
        return self._asked(worker, ShutDown) or self._asked(worker, Suspend)

    def _asked(self, worker: Worker, kind: type[ShutDown | Suspend]) -> bool:
        """Was that asked for, with no effect seen yet, neither a task nor its end?"""
        asked = self._attempts.get(f"{kind.__name__}/{worker.name}/")
        if asked is None or (asked.error and not asked.passing) or task_of(asked, worker) is not None:
            return False
        since_s = asked.sent_s if asked.answered_s is None else asked.answered_s
        return self.moment.now_s - since_s < kind.effect_s

    def _asked_otherwise(self, step: Step) -> bool:
        """Is a request of another step for the same worker still without an answer?"""
        return bool(self._out.get(step.worker, set()) - {step.name})

    def _starting(self, worker: Worker) -> frozenset[str]:
        """The other workers of this host whose start was sent, by us or by anybody, and is not seen yet."""
        others = (other for other in self.fleet.on_host(worker.host) if other.name != worker.name and not other.on)
        return frozenset(other.name for other in others if self._start_is_out(other))

    def _start_is_out(self, worker: Worker) -> bool:
        if worker.busy_with is not None:
            return worker.busy_with.kind == "powerOn"
        attempt = self._attempts.get(f"PowerOn/{worker.name}/")
        return attempt is not None and not failed(attempt, worker)

    def _consider(self, step: Step, request: Request) -> None:
        key = f"{step.name}/{_part(request)}"
        if not self._may_send(key, step):
            self.waits[step.name] = self._asked_to_wait(key) or self.waits[step.name]
            return
        if not self._budget_allows(request):
            return
        if why := broken_by(request, self.fleet):
            self.waits[step.name] = why
            return
        tries = self._attempts[key].tries + 1 if key in self._attempts else 1
        self._attempts[key] = Attempt(sent_s=self.moment.now_s, tries=tries, spends=self._spends(request))
        self.sends.append(Send(key=key, request=request, patient=step.patient))

    def _may_send(self, key: str, step: Step) -> bool:
        """Never while the same request is out, nor before its effect was looked for."""
        attempt = self._attempts.get(key)
        if attempt is None:
            return True
        if attempt.answered_s is None:
            return False
        again = failed(attempt, self.fleet.find(step.worker))
        pause = max(min(0.25 * 2 ** min(attempt.tries, 5), 5.0), attempt.after_s) if again else step.effect_s
        return self.moment.now_s - attempt.answered_s >= pause

    def _asked_to_wait(self, key: str) -> str:
        attempt = self._attempts[key]
        return f"Kubernetes asks to wait {attempt.after_s:.0f} s" if attempt.error and attempt.after_s else ""

    def _budget_allows(self, request: Request) -> bool:
        if not isinstance(request, Evict):
            return True
        keys = [_budget_key(budget) for budget in budgets_to_pay(self.fleet, request.pod)]
        if any(self.left[key] <= 0 for key in keys):
            return False
        for key in keys:
            self.left[key] -= 1
        return True


def task_of(attempt: Attempt, worker: Worker | None) -> Task | None:
    """The vCenter task that this request became, as the fleet shows it."""
    tasks = worker.tasks if worker else ()
    return next((task for task in tasks if attempt.task and task.key == attempt.task), None)


def failed(attempt: Attempt, worker: Worker | None) -> bool:
    task = task_of(attempt, worker)
    return bool(attempt.error) or (task is not None and task.fault is not None)


def _part(request: Request) -> str:
    """What tells the requests of one step apart."""
    match request:
        case Evict(pod=pod):
            return pod.uid
        case DeletePod(pod=pod):
            return f"delete {pod.uid}"
        case PowerOffVm():
            return "power-off"
    return ""


def _budget_key(budget: Budget) -> tuple[str, str]:
    return budget.namespace, budget.name
