"""What passes between runner and screen becomes an entry: beginnings, ends, what was waited for, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from tests.support.fleets import day_and_night
from vgpuctl.engine.ports import Report
from vgpuctl.engine.reactor import Decision
from vgpuctl.engine.recorder import EVERY_S, Recorder
from vgpuctl.engine.run_state import RunState
from vgpuctl.engine.runner import Progress
from vgpuctl.model.journal import Entry, HostReport, PastStep
from vgpuctl.model.plan import Plan
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import Cordon, Drain, MarkAsleep, Suspend, Uncordon

FLEET, WISH = day_and_night()
WHOLE = plan(FLEET, WISH)
BUDGET = Wait.of(Reason.BUDGET, "default/gateway-0", "gateway")


@dataclass
class Desk:
    """Journal and screen in one."""

    failing: str = ""
    kept: list[Entry] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    shown: int = 0

    def keep(self, entry: Entry) -> None:
        self.kept.append(entry)

    def close(self, entry: Entry) -> str:
        self.kept.append(entry)
        return self.failing

    def say(self, text: str) -> None:
        self.said.append(text)

    def progress(self, progress: Progress) -> None:
        self.shown += 1


def rest(done: set[StepId]) -> Plan:
    needs = {step.id: WHOLE.needs[step.id] - done for step in WHOLE if step.id not in done}
    return Plan(tuple(step for step in WHOLE if step.id not in done), needs)


class Story:
    """Looks at the night's plan, of which ever more is done."""

    def __init__(self, desk: Desk) -> None:
        self.recorder = Recorder(desk, desk)
        self.done: set[StepId] = set()
        self.recorder.begin("night", "day-night", "2026-11-17T20:00:03Z")

    def look(
        self,
        at_s: float,
        *done: StepId,
        waits: Mapping[StepId, Wait] | None = None,
        again: StepId | None = None,
        stopping: bool = False,
    ) -> None:
        once_more = {again} if again is not None else set[StepId]()
        self.done = (self.done | set(done)) - once_more
        todo = rest(self.done)
        state = RunState(due_since={step.id: at_s for step in todo.ready()}, stopping=stopping)
        decision = Decision(state=state, plan=todo, waits=waits or {})
        seen = dict.fromkeys(self.done | once_more, 1.0)
        self.recorder.progress(Progress(first=WHOLE, decision=decision, fleet=FLEET, done=seen, elapsed_s=at_s))


CORDONS = tuple(Cordon.of(f"worker-{n}") for n in range(1, 5))
DRAINS = tuple(Drain.of(f"worker-{n}") for n in range(1, 5))


def told(desk: Desk) -> dict[str, PastStep]:
    return {step.id: step for step in desk.kept[-1].steps}


def test_each_step_is_told_with_its_times_and_the_one_it_waited_for_last() -> None:
    desk = Desk()
    story = Story(desk)
    story.look(0.0)
    story.look(0.5, *CORDONS[:3])
    story.look(1.0, CORDONS[3])
    story.look(3.0, *DRAINS)
    story.recorder.close()
    steps = told(desk)
    drain = steps["Drain/worker-1"]
    assert (drain.began_s, drain.ended_s, drain.after, drain.host, drain.what) == (
        1.0,
        3.0,
        CORDONS[3],
        "esx-1",
        "drain",
    )
    assert steps["Suspend/worker-1"].after == "Drain/worker-1"
    assert steps["Suspend/worker-1"].ended_s is None
    assert "PowerOn/worker-5" not in steps
    assert desk.shown == 4


def test_of_several_that_ended_at_once_it_waited_for_the_one_that_took_longest() -> None:
    desk = Desk()
    story = Story(desk)
    suspends = [Suspend.of(f"worker-{n}") for n in range(1, 5)]
    story.look(0.0, *CORDONS, MarkAsleep.of("worker-5"))
    for n, drain in enumerate((DRAINS[2], DRAINS[0], DRAINS[3], DRAINS[1])):
        story.look(1.0 + n, drain)
    story.look(9.0, *suspends)
    story.recorder.close()
    assert told(desk)["PowerOn/worker-5"].after == "Suspend/worker-3"


def test_what_held_a_step_longest_is_kept_and_for_how_long() -> None:
    desk = Desk()
    story = Story(desk)
    story.look(0.0, *CORDONS)
    story.look(1.0, waits={DRAINS[2]: BUDGET, DRAINS[0]: Wait.of(Reason.PODS, "1 pod", "")})
    story.look(3.0, waits={DRAINS[2]: Wait.of(Reason.BUDGET, "default/gateway-1", "gateway")})
    story.look(25.0, waits={DRAINS[2]: Wait.of(Reason.UNHEARD, "Kubernetes cannot be heard")})
    story.look(26.0, *DRAINS)
    story.recorder.close()
    held = told(desk)["Drain/worker-3"]
    assert (held.held_by, held.held_reason, held.held_s) == ("budget gateway", "budget", 24.0)
    assert told(desk)["Drain/worker-1"].held_by == ""


def test_a_step_that_is_due_once_more_goes_on_where_it_began() -> None:
    desk = Desk()
    story = Story(desk)
    story.look(0.0, *CORDONS)
    story.look(2.0, DRAINS[0])
    story.look(4.0, again=DRAINS[0])
    story.look(6.0, DRAINS[0])
    story.recorder.close()
    drain = told(desk)["Drain/worker-1"]
    assert (drain.began_s, drain.ended_s) == (0.0, 6.0)


def test_a_step_that_the_plan_dropped_was_given_up_and_what_it_did_not_foresee_follows_from_that() -> None:
    desk = Desk()
    story = Story(desk)
    story.look(0.0, *CORDONS)
    back = Uncordon("worker-2", ())
    state = RunState(due_since={back.id: 7.0})
    decision = Decision(state=state, plan=Plan((back,), {back.id: frozenset()}), waits={})
    seen = dict.fromkeys((*CORDONS, DRAINS[0]), 1.0)
    story.recorder.progress(Progress(first=WHOLE, decision=decision, fleet=FLEET, done=seen, elapsed_s=7.0))
    story.recorder.close()
    steps = told(desk)
    assert (steps["Drain/worker-1"].done, steps["Drain/worker-2"].done) == (True, False)
    assert (steps["Drain/worker-2"].ended_s, steps["Drain/worker-2"].given_up) == (7.0, True)
    after = steps["Uncordon/worker-2"].after
    assert after is not None and steps[after].ended_s == 7.0


def test_nothing_begins_any_more_once_it_is_to_stop() -> None:
    desk = Desk()
    story = Story(desk)
    story.look(0.0, *CORDONS)
    story.look(2.0, *DRAINS, stopping=True)
    story.recorder.close()
    assert all(step.ended_s == 2.0 for name, step in told(desk).items() if name in DRAINS)
    assert "Suspend/worker-1" not in told(desk)


def test_it_is_written_at_the_beginning_and_now_and_then_if_anything_changed() -> None:
    desk = Desk()
    story = Story(desk)
    assert [entry.outcome for entry in desk.kept] == ["running"]
    for at_s in range(200):
        story.look(at_s / 10)
    assert len(desk.kept) == 2, "one at the beginning, one after ten seconds"
    story.look(3 * EVERY_S, *CORDONS)
    assert len(desk.kept) == 3


@pytest.mark.parametrize(
    ("ends", "interrupted", "outcome"),
    [
        (("done", "done"), False, "done"),
        (("done", "went back"), False, "went back"),
        (("went back", "failed", "not begun"), False, "failed"),
        (("done", "interrupted"), True, "interrupted"),
    ],
)
def test_it_ends_as_the_worst_of_its_hosts(ends: tuple[str, ...], interrupted: bool, outcome: str) -> None:
    desk = Desk()
    story = Story(desk)
    hosts = tuple(HostReport(host=f"esx-{n}", end=end) for n, end in enumerate(ends))
    story.recorder.end(Report(wish="night", hosts=hosts, seconds=9.0, interrupted=interrupted))
    story.recorder.close()
    assert (desk.kept[-1].outcome, desk.kept[-1].seconds, desk.kept[-1].hosts) == (outcome, 9.0, hosts)


def test_without_a_report_it_was_interrupted() -> None:
    desk = Desk()
    Story(desk).recorder.close()
    assert desk.kept[-1].outcome == "interrupted"


def test_what_was_never_begun_is_not_told() -> None:
    desk = Desk()
    recorder = Recorder(desk, desk)
    recorder.end(Report(wish="label-nodes"))
    recorder.close()
    assert desk.kept == []


def test_a_journal_that_fails_is_one_line_at_the_end() -> None:
    desk = Desk(failing="configmaps are forbidden")
    story = Story(desk)
    story.look(0.0)
    story.recorder.close()
    assert desk.said == ["The history will not show this switch: configmaps are forbidden"]


def test_the_pods_of_drains_are_told_with_how_long_they_took() -> None:
    desk = Desk()
    story = Story(desk)
    story.look(0.0, *CORDONS)
    story.look(4.0, *DRAINS)
    story.recorder.close()
    assert [(pods.workload, pods.end_s) for pods in desk.kept[-1].pods] == [("default/ReplicaSet/some", 4.0)]
