"""The laws of planning, over fleets in any state that a crash or a person could leave them in."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.fleets import CATALOGUE, fleets_and_wishes, node, pod, timetable
from tests.support.fleets import fleet as fleet_of
from tests.support.fleets import worker as worker_of
from tests.support.planned import Case, closed_subsets, lawful
from vgpuctl.model.fleet import Worker
from vgpuctl.model.requests import Evict
from vgpuctl.model.wait import Wait
from vgpuctl.planning.cards.releases import may_start
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.planner import plan
from vgpuctl.planning.pods.drain import pods_to_move
from vgpuctl.planning.steps import MarkAsleep, PowerOn, Shield, Uncordon, Unshield, missing_signs
from vgpuctl.planning.wishes import former_wish, switch_wish


@given(fleets_and_wishes())
def test_the_list_can_be_done_from_the_top(case: Case) -> None:
    _, _, todo = lawful(case)
    done: set[str] = set()
    for step in todo:
        assert todo.needs[step.id] <= done
        done.add(step.id)


@given(fleets_and_wishes())
def test_wherever_it_stops_planning_again_gives_exactly_the_rest(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    for done in closed_subsets(todo):
        later = todo.applied_to(fleet, done)
        assert plan(later, wish).ids == todo.ids - done


@given(fleets_and_wishes())
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    after = todo.applied_to(fleet)
    assert not plan(after, wish)
    for name, mine in wish.workers.items():
        assert after.worker(name).on == mine.awake


@given(fleets_and_wishes())
def test_no_step_breaks_a_law_when_its_turn_comes(case: Case) -> None:
    """Release before acquire: none stops with pods, none starts on a full card, no foreign cordon goes."""
    fleet, wish, todo = lawful(case)

    def held(name: str) -> Wait | None:
        return may_start(fleet, wish, fleet.worker(name))

    while todo:
        ready = [
            s for s in todo.ready() if not isinstance(s, PowerOn) or not may_start(fleet, wish, fleet.worker(s.worker))
        ]
        assert ready, f"stuck before {sorted(todo.ids)}"
        step = ready[0]
        if step.id.kind == "Drain":
            fleet = step.applied_to(fleet)
        for request in step.requests(fleet, "now"):
            assert broken_by(request, fleet) == ""
        fleet = step.applied_to(fleet)
        todo = plan(fleet, wish)


@given(fleets_and_wishes())
def test_a_cordon_that_is_not_ours_stays(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    after = todo.applied_to(fleet)
    for name in wish.workers:
        before = fleet.worker(name).node
        assert before is not None
        if before.unschedulable and (before.record is None or not before.record.cordoned):
            left = after.worker(name).node
            assert left is not None
            assert left.unschedulable


@given(fleets_and_wishes())
def test_what_the_wish_does_not_name_is_not_touched(case: Case) -> None:
    fleet, wish = case
    named = set(list(wish.workers)[::2])
    after = plan(fleet, wish.only(named)).applied_to(fleet)
    for name, worker in fleet.workers.items():
        assert name in named or after.worker(name) == worker


@given(fleets_and_wishes())
def test_labels_of_others_are_kept(case: Case) -> None:
    fleet, _, todo = lawful(case)
    after = todo.applied_to(fleet)
    for name, worker in fleet.workers.items():
        assert worker.node is not None
        left = after.worker(name).node
        assert left is not None
        assert left.labels.get("theirs") == worker.node.labels.get("theirs")


@given(fleets_and_wishes())
def test_going_back_is_a_plan_for_the_former_wish(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    running = {name for name in wish.workers if fleet.worker(name).on}
    assume(wish.awake_before & wish.workers.keys() == running)
    after = todo.applied_to(fleet)
    back = plan(after, former_wish(wish)).applied_to(after)
    assert {name for name in wish.workers if back.worker(name).on} == running


@given(fleets_and_wishes())
def test_every_sleeper_is_marked_and_every_waker_released(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    after = todo.applied_to(fleet)
    for name, mine in wish.workers.items():
        node = after.worker(name).node
        assert node is not None
        if mine.awake:
            assert Uncordon(name, ()).done_in(after)
            assert Unshield(name).done_in(after)
        else:
            assert Shield(name).done_in(after)
            assert MarkAsleep(name, wish.name).done_in(after)
            assert node.unschedulable


@given(fleets_and_wishes())
def test_a_machine_is_shielded_from_before_the_sleep_until_its_node_is_truly_back(case: Case) -> None:
    fleet, _, todo = lawful(case)
    for done in closed_subsets(todo):
        later = todo.applied_to(fleet, done)
        for step in done:
            down = step.kind in ("Suspend", "ShutDown")
            if down and not (worker := later.worker(step.subject)).on and worker.machine:
                assert worker.machine.shielded
            if step.kind == "Unshield":
                assert not missing_signs(later.worker(step.subject))


@given(fleets_and_wishes())
def test_the_shields_of_others_stay_and_are_not_claimed(case: Case) -> None:
    fleet, wish, todo = lawful(case)
    after = todo.applied_to(fleet)
    for name in wish.workers:
        before = fleet.worker(name).machine
        if before is not None and before.shielded and not before.ours:
            assert after.worker(name).machine == before


#: Workers that all leave: the host of each, and how many pods it has.
LEAVERS = st.lists(st.tuples(st.sampled_from(("esx-1", "esx-2")), st.integers(0, 2)), min_size=2, max_size=6)


@given(LEAVERS, st.randoms(use_true_random=False))
def test_the_pods_that_a_try_failed_on_leave_before_any_other_of_their_host(
    leavers: list[tuple[str, int]], chance: Random
) -> None:
    workers = [leaver(f"w{number}", *each) for number, each in enumerate(leavers)]
    fleet = fleet_of(*workers)
    wish = switch_wish(fleet, CATALOGUE, timetable(day=tuple(fleet.workers), night=()), "night")
    uids = [pod.uid for each in workers for pod in pods_to_move(each, wish.drain)]
    wish = replace(wish, drain_first=frozenset(chance.sample(uids, min(len(uids), 2))))
    todo = plan(fleet, wish)
    while todo:
        for step in todo.ready():
            asked = {each.pod.uid for each in step.requests(fleet, "now") if isinstance(each, Evict)}
            if asked - wish.drain_first:
                host = fleet.on_host(fleet.host_of(step.subject))
                assert not {pod.uid for each in host for pod in pods_to_move(each, wish.drain)} & wish.drain_first
        fleet = chance.choice(todo.ready()).applied_to(fleet)
        todo = plan(fleet, wish)


def leaver(name: str, host: str, pods: int) -> Worker:
    return worker_of(name, host=host, node=node(name, pods=tuple(pod(f"{name}-p{n}", name) for n in range(pods))))
