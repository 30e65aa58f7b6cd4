"""What earlier switches show: which steps others had to wait for, and how long each step usually takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from vgpuctl.model.journal import Entry, PastStep
from vgpuctl.model.past_pods import PastPods
from vgpuctl.model.plan import Plan, Step

#: The number of entries that a forecast uses. Older entries describe other circumstances.
LOOKED_AT = 12


@dataclass(frozen=True, slots=True)
class Earlier:
    """How long each step took, in which entry, and how pods left.

    Steps are known by what they do and to which worker or workload, pods by their workload.
    """

    times: Mapping[tuple[str, str], Mapping[int, float]] = field(default_factory=dict)
    pods: Mapping[str, tuple[PastPods, ...]] = field(default_factory=dict)

    def usual_s(self, step: Step) -> float | None:
        found = self.times.get((step.describe(), step.subject))
        return median(found.values()) if found else None

    def of_others(self, step: Step) -> dict[str, float]:
        """Return how long the same took with each other worker or workload."""
        what, others = step.describe(), self.times.items()
        return {name: median(took.values()) for (did, name), took in others if did == what and name != step.subject}

    def count(self, plan: Plan) -> int:
        """Return how many entries know a step of this plan that takes time."""
        steps = [step for step in plan if step.lasts]
        return len({number for step in steps for number in self.times.get((step.describe(), step.subject), ())})


def earlier(entries: Iterable[Entry]) -> Earlier:
    times: dict[tuple[str, str], dict[int, float]] = {}
    pods: dict[str, tuple[PastPods, ...]] = {}
    for entry in sorted(entries, key=lambda entry: entry.number)[-LOOKED_AT:]:
        for step in entry.steps:
            if step.done:
                times.setdefault((step.what, step.subject), {})[entry.number] = step.took_s
        for left in entry.pods:
            pods[left.workload] = (*pods.get(left.workload, ()), left)
    return Earlier(times, pods)


def longest_way(entry: Entry) -> list[PastStep]:
    """Return the chain of steps that decided how long the entry took, in the order in which they were done.

    It starts from the step that ended last and goes back over the step that each had waited for.
    """
    # Decision 0011: each step keeps one name, of the step that ended last before it was due.
    by_id = {step.id: step for step in entry.steps}
    step = max(entry.steps, key=lambda step: _end_s(entry, step), default=None)
    way: list[PastStep] = []
    while step is not None:
        way.append(step)
        step = by_id.pop(step.after, None) if step.after else None
    return way[::-1]


def _end_s(entry: Entry, step: PastStep) -> float:
    return entry.seconds if step.ended_s is None else step.ended_s
