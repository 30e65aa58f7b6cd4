"""What may keep a coming shift from coming, or from coming in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.phrases import first_names, folded_names
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan
from vgpuctl.model.pods import Budget, Pod
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.pods.budgets import dead_ends
from vgpuctl.planning.pods.drain import budgets_to_pay, pods_to_move
from vgpuctl.planning.steps import Drain
from vgpuctl.reporting.forecast import Forecast
from vgpuctl.reporting.step_history import Earlier

FACTS_SHOWN = 3


class LookedAhead(Protocol):
    """The parts of a dry run that tell what is coming."""

    @property
    def fleet(self) -> Fleet: ...
    @property
    def wish(self) -> Wish: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def refusals(self) -> tuple[Refusal, ...]: ...
    @property
    def earlier(self) -> Earlier: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """One thing that stands in the way, and the workers that it concerns.

    `about`: stays the same while the cause or its figures change. `cause`: a new cause is told, new figures are not.
    `better`: what is said once it is gone.
    """

    about: tuple[str, ...]
    cause: tuple[str, ...] = ()
    message: str
    better: str
    workers: tuple[str, ...]


def refused(looked: LookedAhead) -> Iterator[Risk]:
    for refusal in looked.refusals:
        facts = f" {'; '.join(refusal.details[:FACTS_SHOWN])}." if refusal.details else ""
        yield Risk(
            about=("refused", refusal.host),
            cause=(refusal.code, refusal.message, *refusal.details),
            message=f"will not begin on {refusal.host}: {refusal.message}{facts} {refusal.hint}",
            better=f"is no longer refused on {refusal.host}.",
            workers=tuple(worker.name for worker in looked.fleet.on_host(refusal.host)),
        )


def unfinished(looked: LookedAhead, forecast: Forecast) -> Iterator[Risk]:
    """Yield the steps that need longer than they have. Their hosts would go back, or lose pods by force."""
    for step in looked.plan:
        if forecast.takes_s[step.id] <= step.deadline_s:
            continue
        # Kubernetes: a pod may take its whole grace to end. Nothing fails before the step's time is over, perhaps hours
        # after the start; ahead of it there is time to act.
        needs, has = format_duration(forecast.takes_s[step.id]), format_duration(step.deadline_s)
        way_out = " Shorten the grace of its pods, or lengthen the drain's timeout." if isinstance(step, Drain) else ""
        yield Risk(
            about=("late", str(step.id)),
            message=f"will not come on {looked.fleet.host_of(step.subject) or step.subject}: {step.subject} may need "
            f"{needs} to {step.deed()}, and has {has}.{way_out}",
            better=f"leaves {step.subject} enough time to {step.deed()}.",
            workers=(step.subject,),
        )


def held(looked: LookedAhead) -> Iterator[Risk]:
    """Yield the budgets that hold pods: dead ends that are not certain, and budgets that let no pod go now."""
    fleet, known = looked.fleet, set[tuple[str, str]]()
    for end in dead_ends(fleet, looked.wish):
        known.add((end.budget.namespace, end.budget.name))
        yield _held(end.budget, f"may be held up: {end.message}", end.workers)
    for budget, pods in _spent(looked):
        if (budget.namespace, budget.name) not in known:
            workers = tuple(dict.fromkeys(worker for worker, _ in pods))
            names = first_names([pod for _, pod in pods])
            must = f"{names} on {folded_names(workers)} must leave"
            yield _held(budget, f"may be held up: budget {budget.name} lets no pod go now, and {must}.", workers)


def _held(budget: Budget, message: str, workers: Iterable[str]) -> Risk:
    return Risk(
        about=("held", budget.namespace, budget.name),
        message=message,
        better=f"is no longer held up by budget {budget.name}.",
        workers=tuple(workers),
    )


def _spent(looked: LookedAhead) -> Iterable[tuple[Budget, list[tuple[str, Pod]]]]:
    """Return the budgets that allow nothing now, with the workers and pods that wait for them."""
    found: dict[tuple[str, str], tuple[Budget, list[tuple[str, Pod]]]] = {}
    for step in looked.plan:
        for pod in pods_to_move(looked.fleet.worker(step.worker), step.options) if isinstance(step, Drain) else ():
            for budget in budgets_to_pay(looked.fleet, pod):
                if budget.allowed <= 0:
                    found.setdefault((budget.namespace, budget.name), (budget, []))[1].append((step.subject, pod))
    return found.values()
