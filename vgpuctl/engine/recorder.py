"""Between the runner and the screen: turns progress into an entry of the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from vgpuctl.engine.listening import MutedOnFailure
from vgpuctl.engine.pod_ends import PodEnds
from vgpuctl.engine.ports import Journal, Report
from vgpuctl.engine.runner import Listener, Progress
from vgpuctl.model.errors import with_place
from vgpuctl.model.journal import DONE, FAILED, INTERRUPTED, NOT_BEGUN, RUNNING, WENT_BACK, Entry, PastStep
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Wait
from vgpuctl.planning.steps import Drain
from vgpuctl.reporting.waits import holder

#: How often a changed entry is written anew (decision 0011). A thread of its own writes, and delays nothing.
EVERY_S = 10.0
#: What holds a step up: its name and its kind.
Hold = tuple[str, str]


class Recorder:
    """A listener that passes on what it hears and records it. A fault of the journal is reported once, at the end.

    It never raises: no decision depends on what it shows and writes.
    """

    def __init__(self, listener: Listener, journal: Journal) -> None:
        self._listener, self._journal = MutedOnFailure(listener), journal
        self._entry: Entry | None = None
        self._steps: dict[StepId, PastStep] = {}
        self._under_way: set[StepId] = set()
        self._held: dict[StepId, dict[Hold, float]] = {}
        self._plan, self._waits = Plan(), dict[StepId, Wait]()
        self._drains, self._pods = dict[StepId, Drain](), PodEnds()
        self._now_s = self._kept_s = 0.0
        self._changed = False

    def begin(self, wish: str, timetable: str, utc: str) -> None:
        with self._recording():
            self._entry = Entry(wish=wish, timetable=timetable, began=datetime.fromisoformat(utc))
            self._journal.keep(self._entry)

    def say(self, text: str) -> None:
        self._listener.say(text)

    def progress(self, progress: Progress) -> None:
        self._listener.progress(progress)
        with self._recording():
            self._record(progress)

    def _record(self, progress: Progress) -> None:
        if self._entry is None:
            return
        self._count_holds(progress.elapsed_s)
        self._see_ends(progress)
        if not progress.decision.state.stopping:
            self._see_beginnings(progress)
        self._plan, self._waits = progress.decision.plan, dict(progress.decision.waits)
        self._pods.look(progress.fleet, self._draining(), self._now_s)
        if self._changed and self._now_s - self._kept_s >= EVERY_S:
            self._kept_s, self._changed = self._now_s, False
            self._journal.keep(self._so_far(self._entry))

    def end(self, report: Report) -> None:
        with self._recording():
            if self._entry is not None:
                self._now_s = report.seconds
                self._entry = replace(self._entry, outcome=_outcome(report), hosts=report.hosts)

    def close(self) -> None:
        """Write the entry for the last time. Without a report, an error or a person ended the run at once."""
        with self._recording():
            if self._entry is None:
                return
            if self._entry.outcome == RUNNING:
                self._entry = replace(self._entry, outcome=INTERRUPTED)
            if why := self._journal.close(self._so_far(self._entry)):
                self._listener.say(f"The history will not show this switch: {why}")

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Make a fault of ours end the entry, and nothing else."""
        try:
            yield
        # Decision 0011: a journal that fails delays nothing. One line at the end says so.
        except Exception as error:
            self._entry = None
            self._listener.say(f"The history will not show this switch: {with_place(error)}")

    def _count_holds(self, now_s: float) -> None:
        """Count the time since the last look for each wait: what was waited for then was waited for until now."""
        for step, wait in self._waits.items():
            if by := holder(wait):
                held, hold = self._held.setdefault(step, {}), (by, wait.reason.value)
                held[hold] = held.get(hold, 0.0) + now_s - self._now_s
        self._now_s = now_s

    def _see_ends(self, progress: Progress) -> None:
        for id in self._under_way - progress.decision.plan.ids:
            self._steps[id] = replace(self._steps[id], ended_s=self._now_s, given_up=id not in progress.done)
            self._under_way.remove(id)
            self._changed = True

    def _see_beginnings(self, progress: Progress) -> None:
        due = progress.decision.state.due_since
        new = due.keys() - self._under_way
        for step in progress.decision.plan if new else ():
            if step.id in new:
                self._under_way.add(step.id)
                self._steps[step.id] = self._begun(step, progress.fleet.host_of(step.subject))
                self._changed = True

    def _draining(self) -> Iterator[tuple[Drain, float]]:
        """Yield the drains under way, each with its beginning."""
        for id, drain in self._drains.items():
            if id in self._under_way:
                yield drain, self._steps[id].began_s

    def _begun(self, step: Step, host: str) -> PastStep:
        """Return the step as begun.

        A step that is due again, for a pod that came late, continues from its first beginning.
        """
        if isinstance(step, Drain):
            self._drains[step.id] = step
        if before := self._steps.get(step.id):
            return replace(before, ended_s=None, given_up=False)
        return PastStep(
            id=step.id,
            host=host,
            what=step.describe(),
            began_s=self._now_s,
            after=self._last_of(self._plan.needs.get(step.id) or self._on(host)),
        )

    def _on(self, host: str) -> Iterable[StepId]:
        """Return the steps recorded on this host.

        A step that the last plan did not foresee follows the last of them.
        """
        return (step.id for step in self._steps.values() if step.host == host)

    def _last_of(self, steps: Iterable[StepId]) -> StepId | None:
        """Return the step that ended last; of several at once, the one that took longest."""
        ended = [(step.ended_s, step.took_s, step.id) for each in steps if (step := self._ended(each))]
        # Decision 0011: one name is enough for the longest way; 160 drains would keep sixteen thousand otherwise.
        return max(ended)[2] if ended else None

    def _ended(self, id: StepId) -> PastStep | None:
        step = self._steps.get(id)
        return step if step and step.ended_s is not None else None

    def _so_far(self, entry: Entry) -> Entry:
        steps = tuple(self._told(step) for step in self._steps.values())
        return replace(entry, seconds=self._now_s, steps=steps, pods=self._pods.found())

    def _told(self, step: PastStep) -> PastStep:
        held = self._held.get(step.id)
        if not held:
            return step
        hold = max(held, key=held.__getitem__)
        return replace(step, held_by=hold[0], held_reason=hold[1], held_s=held[hold])


def _outcome(report: Report) -> str:
    """Return the worst end of all hosts."""
    ends = {host.end for host in report.hosts}
    if report.interrupted or report.unheard:
        return INTERRUPTED
    return next((end for end in (FAILED, WENT_BACK, NOT_BEGUN, INTERRUPTED) if end in ends), DONE)
