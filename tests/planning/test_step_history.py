"""What earlier switches tell: the longest way through one, and how long a step takes as a rule."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.support.fleets import day_and_night, with_worker
from tests.support.past import night, past_step
from vgpuctl.model.journal import document, from_document
from vgpuctl.model.past_pods import PastPods
from vgpuctl.model.plan import Plan
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import PowerOn, Suspend
from vgpuctl.reporting.forecast import StepTimes, forecast
from vgpuctl.reporting.step_history import LOOKED_AT, Earlier, earlier, longest_way

WAY = ["Cordon/worker-3", "Drain/worker-3", "Suspend/worker-3", "PowerOn/worker-5", "WaitBack/worker-5"]


def test_the_longest_way_is_what_each_step_had_waited_for_last() -> None:
    assert [step.id for step in longest_way(night())] == WAY


def test_a_step_whose_end_was_not_seen_is_the_end_of_the_way() -> None:
    stuck = replace(night().steps[2], ended_s=None)
    entry = night(steps=(*night().steps[:2], stuck, *night().steps[3:]))
    assert [step.id for step in longest_way(entry)] == ["Cordon/worker-3", "Drain/worker-1"]


def test_of_nothing_there_is_no_way() -> None:
    assert longest_way(night(steps=())) == []


def test_an_entry_is_read_back_as_it_was_written() -> None:
    stopped = past_step("Drain/worker-2", 1.0, 2.5, given_up=True)
    left = PastPods(workload="default/ReplicaSet/web", end_s=2.5, grace_s=30.0, refill_s=4.0)
    pods = night(pods=(left, replace(left, refill_s=None)))
    for entry in (night(), night().shortened(3), night(outcome="running", steps=()), night(steps=(stopped,)), pods):
        assert from_document(json.loads(json.dumps(document(entry)))) == entry


def test_the_shortest_steps_go_first_and_the_way_stays_whole() -> None:
    short = night().shortened(5)
    gone = {step.id for step in night().steps} - {step.id for step in short.steps}
    assert gone == {WAY[0], "Cordon/worker-1", "Drain/worker-1"}
    assert short.left_out == 3
    assert [step.id for step in longest_way(short)] == WAY[1:]
    assert next(step for step in short.steps if step.id == "Suspend/worker-1").after is None
    assert short.shortened(4).left_out == 4


def test_a_forecast_is_the_median_of_what_was_seen_with_this_worker() -> None:
    fleet, _ = day_and_night()
    took = (40.0, 41.0, 90.0)
    entries = [night(number=n, steps=(past_step("Suspend/worker-1", 1.0, 1.0 + s),)) for n, s in enumerate(took)]
    times = StepTimes(fleet, earlier(entries))
    assert times.of(Suspend("worker-1")) == 41.0
    assert times.knows(Suspend("worker-1"))
    assert not times.knows(Suspend("worker-2"))


def test_a_worker_never_seen_takes_as_many_times_its_assumption_as_others_took() -> None:
    fleet, _ = day_and_night()
    small, large = 64 * 1024, 256 * 1024
    fleet = with_worker(with_worker(fleet, "worker-1", memory_mib=small), "worker-2", memory_mib=large)
    assumed = StepTimes(fleet, Earlier())
    one, two = Suspend("worker-1"), Suspend("worker-2")
    assert assumed.of(two) == assumed.assumed_s(two) != assumed.assumed_s(one)
    twice = night(steps=(past_step(one.id, 0.0, 2 * assumed.of(one)), past_step("Suspend/gone", 0.0, 9.0)))
    assert StepTimes(fleet, earlier([twice])).of(two) == 2 * assumed.of(two)


def test_a_start_is_no_resume() -> None:
    fleet, _ = day_and_night()
    times = StepTimes(fleet, earlier([night()]))
    assert times.of(PowerOn("worker-5", resume=True)) == 36.0
    cold = PowerOn("worker-5", resume=False)
    assert times.of(cold) == times.assumed_s(cold)


def test_only_the_last_entries_count_and_only_ends_that_were_seen() -> None:
    old = [night(number=1, steps=(past_step("Suspend/worker-1", 0.0, 900.0),))]
    new = [night(number=n, steps=(past_step("Suspend/worker-1", 0.0, 10.0),)) for n in range(2, 2 + LOOKED_AT)]
    unseen = [night(number=2, steps=(past_step("Suspend/worker-2", 0.0, None),))]
    assert earlier([*new, *old]).usual_s(Suspend("worker-1")) == 10.0
    assert earlier(old).usual_s(Suspend("worker-1")) == 900.0
    assert earlier(unseen).usual_s(Suspend("worker-2")) is None
    given_up = [night(number=2, steps=(past_step("Suspend/worker-2", 0.0, 9.0, given_up=True),))]
    assert earlier(given_up).usual_s(Suspend("worker-2")) is None


def test_the_whole_is_forecast_from_its_longest_way_and_says_how_many_know_it() -> None:
    fleet, wish = day_and_night()
    todo = plan(fleet, wish)
    seen = [past_step(step.id, 0.0, 1.0, what=step.describe()) for step in todo]
    left = (PastPods(workload="default/ReplicaSet/some", end_s=1.0, grace_s=30.0),)
    known = earlier(night(number=n, steps=tuple(seen), pods=left) for n in (3, 4))
    ladder = ["Cordon", "Drain", "Suspend", "PowerOn", "WaitBack", "Uncordon"]
    assert forecast(todo, fleet, known).length_s == len(ladder)
    assert known.count(todo) == 2
    assert known.count(Plan((Suspend("worker-9"),))) == 0
