"""What the engine remembers between two looks: which requests are out, and since when each step is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from vgpuctl.model.plan import Step
from vgpuctl.model.step_id import StepId
from vgpuctl.planning.signs import Signs, Spent, bounded
from vgpuctl.planning.steps import kind_named
from vgpuctl.reporting.causes import Cause

#: Stands in place of a host for what concerns all hosts: the workloads.
EVERYWHERE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request that was sent.

    `answered_s` is None while it is in flight; `spends`: its budgets' versions at that time.
    `after_s`: how long the server that refused it asks to wait. `patience`: how often such a refusal is tried again,
    although it may pass. `of_former_plan`: it was out when its host turned back, so the present plan may ask for
    something else.
    """

    sent_s: float
    answered_s: float | None = None
    task: str | None = None
    error: str = ""
    passing: bool = False
    after_s: float = 0.0
    patience: int | None = None
    tries: int = 1
    of_former_plan: bool = False
    spends: Mapping[tuple[str, str], str] = field(default_factory=dict)


class RequestKey(NamedTuple):
    """The key of a request, by which its answer is filed. `part` distinguishes the requests of one step."""

    step: StepId
    part: str

    def __str__(self) -> str:
        return f"{self.step}/{self.part}"


#: The requests of one step, by the part that distinguishes them.
Attempts = Mapping[str, Attempt]
NONE: Attempts = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What a run knows so far, frozen like everything that decisions are made on: each look makes a new one.

    `leaves_tasks`: once stopped, do not wait for vCenter's tasks: the next run finds them in the fleet.
    `attempts`: by step. A step's attempts stay the same object until one of them changes.
    `failed_on`: by host, the signs at the moment of its failures.
    `due_since`: excludes time during which a server was not heard. `looked_s`, `blind`: when the last look was taken,
    and whether a server was not heard then. `blind_s`: for how long in all. `unheard`: the servers that made the run
    stop.
    """

    attempts: Mapping[StepId, Attempts] = field(default_factory=dict)
    due_since: Mapping[StepId, float] = field(default_factory=dict)
    going_back: Mapping[str, Cause] = field(default_factory=dict)
    gave_up: Mapping[str, Cause] = field(default_factory=dict)
    held_back: Mapping[str, Cause] = field(default_factory=dict)
    failed_on: Mapping[str, Signs] = field(default_factory=dict)
    booting: frozenset[str] = frozenset()
    left: frozenset[StepId] = frozenset()
    stopping: bool = False
    leaves_tasks: bool = False
    looked_s: float = 0.0
    blind: bool = False
    blind_s: float = 0.0
    unheard: tuple[str, ...] = ()

    def answered(self, key: RequestKey, now: float, **outcome: object) -> RunState:
        step, part = key
        known = self.attempts.get(step, NONE)
        if part not in known:
            return self
        attempt: Attempt = replace(known[part], answered_s=now, **outcome)  # type: ignore[arg-type]
        return replace(self, attempts={**self.attempts, step: {**known, part: attempt}})

    def withdrawn(self, key: RequestKey, now: float) -> RunState:
        """Note that the request was not sent after all. A first request is forgotten, as if it had not been decided."""
        step, part = key
        known = dict(self.attempts.get(step, NONE))
        if part in known and known[part].tries > 1:
            return self.answered(key, now, error="it was withdrawn", passing=True)
        known.pop(part, None)
        others = {name: attempts for name, attempts in self.attempts.items() if name != step}
        return replace(self, attempts={**others, step: known} if known else others)

    def due(self, steps: Iterable[StepId], now: float) -> RunState:
        """Return the state with the steps that are due now, and since when each has been due."""
        return replace(self, due_since={step: self.due_since.get(step, now) for step in steps})

    def turn_back(self, host: str, why: Cause, workers: Iterable[str]) -> RunState:
        """Return the state in which this host follows the former wish.

        What was tried for the old wish is forgotten.
        """
        return replace(self.forget(workers), going_back={**self.going_back, host: why})

    def boot(self, workers: Iterable[str]) -> RunState:
        """Return the state in which these workers boot: they could not be resumed.

        What was tried for that is forgotten.
        """
        names = frozenset(workers)
        return replace(self.forget(names), booting=self.booting | names)

    def leave(self, steps: Iterable[StepId]) -> RunState:
        """Return the state in which these steps are not waited for any more."""
        return replace(self, left=self.left.union(steps))

    def give_up(self, host: str, why: Cause) -> RunState:
        return replace(self, gave_up={**self.gave_up, host: why})

    def hold_back(self, hosts: Iterable[str], why: Cause) -> RunState:
        """Return the state in which these hosts are not begun any more."""
        return replace(self, held_back={**dict.fromkeys(hosts, why), **self.held_back})

    def fail_on(self, hosts: Iterable[str], signs: Signs) -> RunState:
        """Return the state that keeps what these hosts failed on.

        A failure of the way back adds to the first one. A failure of another try replaces what was known.
        """
        known = {host: self.failed_on.get(host, {}) if host in self.going_back else {} for host in hosts}
        more = {host: bounded({**signs, **before}) for host, before in known.items()}
        return replace(self, failed_on={**self.failed_on, **more})

    def spent(self) -> Spent:
        """Return how many evictions this run has taken from each budget."""
        taken = (budget for each in self.all_attempts() if not each.error for budget in each.spends)
        return Counter(taken)

    def begun(self) -> set[str]:
        """Return the workers for which something was asked."""
        return {step.subject for step in self.attempts}

    def forget(self, workers: Iterable[str]) -> RunState:
        """Forget the workers' attempts, except the ones that are out or may still take a worker down.

        A guest or vCenter that was asked to stop a VM cannot be asked not to.
        """
        names = set(workers)
        kept = {
            step: attempts if step.subject not in names else _not_to_forget(step, attempts)
            for step, attempts in self.attempts.items()
        }
        due = {step: since for step, since in self.due_since.items() if step.subject not in names}
        return replace(self, attempts={step: some for step, some in kept.items() if some}, due_since=due)

    def of(self, step: Step) -> Attempts:
        return self.attempts.get(step.id, NONE)

    def all_attempts(self) -> Iterator[Attempt]:
        return (attempt for attempts in self.attempts.values() for attempt in attempts.values())

    def out(self) -> dict[str, set[StepId]]:
        """Return, for each worker, the steps with a request that is still without an answer."""
        found: dict[str, set[StepId]] = {}
        for step, attempts in self.attempts.items():
            if any(attempt.answered_s is None for attempt in attempts.values()):
                found.setdefault(step.subject, set()).add(step)
        return found

    @property
    def in_flight(self) -> bool:
        return any(attempt.answered_s is None for attempt in self.all_attempts())


def _not_to_forget(step: StepId, attempts: Attempts) -> Attempts:
    # vSphere: not every task can be cancelled, and a guest that shuts down cannot be stopped.
    goes_down = kind_named(step.kind).takes_down
    return {
        part: replace(attempt, of_former_plan=True)
        for part, attempt in attempts.items()
        if attempt.answered_s is None or (goes_down and (attempt.passing or not attempt.error))
    }
