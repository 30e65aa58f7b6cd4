"""Workloads sleep in a shift: to zero before anybody leaves, back once all are back. Nobody else's size is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fleets import CATALOGUE, budget, node, pod, scaled, timetable, with_node, worker, workload
from tests.support.fleets import fleet as fleet_of
from vgpuctl.engine.dispatcher import Moment
from vgpuctl.engine.reactor import Goal, decide
from vgpuctl.engine.run_state import EVERYWHERE, Attempt, RunState
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import RefusedError
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.places import Needs
from vgpuctl.model.plan import Plan
from vgpuctl.model.pods import Pod
from vgpuctl.model.requests import Evict, ScaleWorkload
from vgpuctl.model.step_id import StepId
from vgpuctl.model.timetable import Timetable
from vgpuctl.model.wish import Wish, WorkerWish, WorkloadWish
from vgpuctl.model.workloads import Workload, WorkloadSelector
from vgpuctl.operations import look_ahead
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import Cordon, Drain, ScaleDown, ScaleUp, Suspend
from vgpuctl.planning.wishes import former_wish, switch_wish
from vgpuctl.reporting.causes import StepRefused
from vgpuctl.reporting.notices import notices
from vgpuctl.reporting.waits import sentence

GATEWAY = "default/deployment/gateway"
WHOLE = "grid_v100-16q"


def table(*scale: WorkloadSelector) -> Timetable:
    by_day = timetable(day=("worker-1", "worker-2"), night=("worker-5",))
    night = replace(by_day.shifts["night"], scale=scale or (WorkloadSelector(kind="deployment", name="gateway"),))
    return replace(by_day, shifts={**by_day.shifts, "night": night})


GPU = Needs(requests=(("nvidia.com/gpu", 1000),))


def gateway_pod(number: int) -> Pod:
    return pod(f"gateway-{number}", f"worker-{number}", labels={"app": "gateway"}, needs=GPU)


def by_day(gateway: Workload | None = None, **more: object) -> Fleet:
    """Two day workers, each with a pod of the gateway and one notebook."""
    found = gateway or workload("gateway", 2)
    day = [
        worker(
            f"worker-{n}",
            node=node(
                f"worker-{n}",
                pods=(gateway_pod(n), pod(f"notebook-{n}", f"worker-{n}")),
            ),
        )
        for n in (1, 2)
    ]
    sleeper = worker("worker-5", WHOLE, on=False, power=Power.SUSPENDED)
    return fleet_of(*day, sleeper, workloads={found.key: found}, **more)  # type: ignore[arg-type]


def night(fleet: Fleet, *scale: WorkloadSelector) -> Wish:
    return switch_wish(fleet, CATALOGUE, table(*scale), "night")


def day(fleet: Fleet) -> Wish:
    return switch_wish(fleet, CATALOGUE, table(), "day")


def done(fleet: Fleet, wish: Wish) -> Fleet:
    return plan(fleet, wish).applied_to(fleet)


def on_hosts(count: int) -> Fleet:
    """On each host one day worker, with a pod of the gateway."""
    found = workload("gateway", count)
    workers = (
        worker(f"worker-{n}", host=f"esx-{n}", node=node(f"worker-{n}", pods=(gateway_pod(n),))) for n in range(count)
    )
    return fleet_of(*workers, workloads={found.key: found})


def all_asleep(fleet: Fleet) -> Wish:
    workers = {name: WorkerWish(awake=False) for name in fleet.workers}
    workloads = {GATEWAY: WorkloadWish(asleep=True)}
    return Wish(name="night", timetable="test", catalogue=CATALOGUE, workers=workers, workloads=workloads)


def names_kept(todo: Plan) -> int:
    """How many names the needs of a plan hold, those that are one set in memory counted once."""
    return sum(len(needed) for needed in {id(needed): needed for needed in todo.needs.values()}.values())


def test_a_plan_grows_as_its_fleet_does() -> None:
    """All drains need all cordons and all workloads at zero: were each to hold its own set, it would be the square."""
    few, many = (plan(some, all_asleep(some)) for some in (on_hosts(10), on_hosts(40)))
    assert all(ScaleDown.of(GATEWAY) in few.needs[Drain.of(f"worker-{n}")] for n in range(10))
    assert names_kept(many) <= 4 * names_kept(few)


def test_it_goes_to_zero_before_any_drain_and_its_size_is_recorded_in_the_same_patch() -> None:
    fleet = by_day()
    todo = plan(fleet, night(fleet))
    step = next(iter(todo))
    assert step.id == f"ScaleDown/{GATEWAY}"
    assert not todo.needs[step.id]
    assert all(step.id in todo.needs[each.id] for each in todo if each.id.kind == "Drain")
    (request,) = step.requests(fleet, "now")
    assert isinstance(request, ScaleWorkload)
    assert (request.replicas, request.scaled and request.scaled.replicas) == (0, 2)


def test_it_gets_its_size_back_when_the_last_is_back() -> None:
    fleet = done(by_day(), night(by_day()))
    assert fleet.workloads[GATEWAY].sleeps
    todo = plan(fleet, day(fleet))
    last = list(todo)[-1]
    assert last.id == f"ScaleUp/{GATEWAY}"
    assert todo.needs[last.id] == {"Uncordon/worker-1", "Uncordon/worker-2"}
    back = todo.applied_to(fleet).workloads[GATEWAY]
    assert (back.replicas, back.scaled) == (2, None)


def test_who_scales_it_up_meanwhile_has_the_last_word() -> None:
    asleep = done(by_day(), night(by_day()))
    fleet = asleep.with_workload(GATEWAY, replicas=1)
    assert not [step for step in plan(fleet, night(fleet)) if step.id.startswith("Scale")]
    (request,) = next(s for s in plan(fleet, day(fleet)) if s.id.kind == "ScaleUp").requests(fleet, "now")
    assert isinstance(request, ScaleWorkload)
    assert (request.replicas, request.scaled) == (None, None)
    assert done(fleet, day(fleet)).workloads[GATEWAY].replicas == 1


def test_what_is_at_zero_already_or_scaled_by_another_timetable_is_left_alone() -> None:
    for gateway in (workload("gateway", 0), workload("gateway", 0, scaled=scaled(2, "another"))):
        fleet = by_day(gateway)
        assert not [step for step in plan(fleet, night(fleet)) if step.id.startswith("Scale")]
        asleep = done(fleet, night(fleet))
        assert not [step for step in plan(asleep, day(asleep)) if step.id.startswith("Scale")]


def test_its_pods_are_not_evicted_but_those_of_others_are() -> None:
    """Nor need they anybody's leave, for no drain deletes them."""
    fleet = by_day()
    wish = night(fleet)
    drain = next(step for step in plan(fleet, wish) if step.id == "Drain/worker-1")
    at_zero = fleet.with_workload(GATEWAY, replicas=0)
    evicted = [request.pod.name for request in drain.requests(at_zero, "") if isinstance(request, Evict)]
    assert evicted == ["notebook-1"]
    assert sentence(drain.waits_for(at_zero)) == f"gateway-1 ends with {GATEWAY}"
    assert not drain.done_in(at_zero)
    scaled_up_again = fleet.with_workload(GATEWAY, replicas=1)
    evicted = [request.pod.name for request in drain.requests(scaled_up_again, "") if isinstance(request, Evict)]
    assert evicted == ["gateway-1", "notebook-1"]


def test_a_bare_pod_with_the_same_labels_is_none_of_its_replicas() -> None:
    gateway = workload("gateway")
    assert gateway.has(pod("a", labels={"app": "gateway"}))
    assert not gateway.has(pod("a", labels={"app": "gateway"}, owner=None))
    assert not gateway.has(pod("a", labels={"app": "gateway"}, owner="Job/batch"))
    assert not gateway.has(pod("a", labels={"app": "gateway"}, namespace="other"))
    db = workload("db", kind="statefulset")
    assert db.has(pod("db-0", owner="StatefulSet/db")) and not db.has(pod("db-0", owner="StatefulSet/other"))


def test_a_budget_that_could_never_be_met_is_no_end_for_a_workload_that_sleeps() -> None:
    """Both pods fit only where they leave, and the budget keeps one of them."""
    keeps_one = replace(budget("pace", 0, app="gateway"), desired=1, expected=2)
    fleet = by_day(budgets=(keeps_one,))
    (refusal,) = look_ahead(fleet, night(fleet, WorkloadSelector(name="nobody"))).refusals
    assert "can never be drained" in refusal.message
    assert not look_ahead(fleet, night(fleet)).refusals


@pytest.mark.parametrize("who", ["the HorizontalPodAutoscaler gateway decides its size", "Argo CD sets its replicas"])
def test_whose_size_others_decide_is_refused_with_what_to_change(who: str) -> None:
    fleet = by_day(workload("gateway", 2, decided_by=who, way_out="Change that."))
    preview = look_ahead(fleet, night(fleet))
    assert [(r.host, r.message, r.hint) for r in preview.refusals] == [
        ("esx-1", f"{GATEWAY} cannot be scaled to zero: {who}.", "Change that.")
    ]
    assert not preview.plan


def test_a_name_that_is_not_there_is_told_with_the_nearest() -> None:
    fleet = by_day()
    wish = night(fleet, WorkloadSelector(namespace="default", kind="deployment", name="gatewy"))
    told = [remark.message for remark in look_ahead(fleet, wish).remarks]
    assert told == [f"default/deployment/gatewy is to be scaled to zero, but is not there; did you mean {GATEWAY}?"]


def test_workloads_that_are_not_shown_are_not_drained_against_their_budgets_instead() -> None:
    with pytest.raises(RefusedError, match="does not show us deployments"):
        night(replace(by_day(), workloads={}, unseen=("deployments",)))


def test_where_no_host_may_begin_no_workload_is_scaled() -> None:
    fleet = by_day(budgets=(budget("one", 0, app="gateway"), budget("two", 0)))
    stubborn = with_node(fleet, "worker-1", pods=(pod("bare", "worker-1", owner=None),))
    preview = look_ahead(stubborn, night(stubborn))
    assert preview.refusals and not preview.plan


def test_going_back_gives_it_its_size_back_also_after_a_crash() -> None:
    fleet = by_day()
    first = plan(fleet, night(fleet))
    crashed = first.applied_to(fleet, {ScaleDown.of(GATEWAY), Cordon.of("worker-1")})
    left = Departure(timetable="test", host="esx-1", origin="day", to="night", awake=("worker-1", "worker-2"))
    again = night(replace(crashed, departures={left.key: left}))
    names = [step.id for step in plan(crashed, former_wish(again)) if step.id.kind != "MarkAsleep"]
    assert names == ["Uncordon/worker-1", f"ScaleUp/{GATEWAY}"]


def test_going_back_to_a_shift_in_which_it_sleeps_too_leaves_it_asleep() -> None:
    fleet = done(by_day(), night(by_day()))
    wish = night(fleet)
    assert not [step for step in plan(fleet, former_wish(wish)) if step.id.startswith("Scale")]


def test_owners_are_told_that_it_ends_with_its_workload() -> None:
    fleet = by_day()
    wish = night(fleet)
    told = [notice.message for notice in notices(fleet, wish, plan(fleet, wish))]
    assert any("gateway-1, gateway-2 will end, for their workload is scaled to zero" in message for message in told)
    assert any("notebook-1, notebook-2 will be evicted" in message for message in told)


def moment(now_s: float = 0.0) -> Moment:
    return Moment(now_s=now_s, utc="2026-11-18T20:00:00Z")


def refused(step: StepId) -> RunState:
    return RunState(attempts={step: {"": Attempt(sent_s=0.0, answered_s=0.0, error="forbidden")}})


def test_where_it_cannot_be_scaled_down_every_host_goes_back() -> None:
    fleet = by_day()
    wish = night(fleet)
    cordoned = plan(fleet, wish).applied_to(fleet, {Cordon.of("worker-1")})
    decision = decide(Goal(wish=wish, former=former_wish(wish)), cordoned, refused(ScaleDown.of(GATEWAY)), moment())
    assert decision.state.going_back == {"esx-1": StepRefused(GATEWAY, "scale to zero", "forbidden")}
    assert "Uncordon/worker-1/" in [str(send.key) for send in decision.sends]


def test_where_it_cannot_be_scaled_back_the_hosts_stay_where_they_are() -> None:
    fleet = done(by_day(), night(by_day()))
    wish = day(fleet)
    back = plan(fleet, wish).applied_to(fleet, {step.id for step in plan(fleet, wish)} - {ScaleUp.of(GATEWAY)})
    decision = decide(Goal(wish=wish, former=former_wish(wish)), back, refused(ScaleUp.of(GATEWAY)), moment())
    assert decision.finished
    assert (decision.state.going_back, list(decision.state.gave_up)) == ({}, [EVERYWHERE])


def test_a_size_that_cannot_be_read_is_not_guessed() -> None:
    fleet = done(by_day(), night(by_day())).with_workload(GATEWAY, scaled=scaled(None))
    wish = day(fleet)
    step = next(step for step in plan(fleet, wish) if step.id.kind == "ScaleUp")
    assert step.requests(fleet, "") == ()
    assert "is no number" in sentence(step.waits_for(fleet))


def test_only_what_is_ours_is_scaled_back_and_nothing_twice() -> None:
    mine = ScaleWorkload(workload=workload("gateway"), replicas=0, scaled=scaled(3))
    back = ScaleWorkload(workload=workload("gateway"), replicas=3, scaled=None)
    awake, asleep = by_day(), by_day(workload("gateway", 0, scaled=scaled(2)))
    assert not broken_by(mine, awake) and not broken_by(back, asleep)
    assert "law 3:" in broken_by(mine, asleep) and "law 3:" in broken_by(back, awake)


def test_plans_of_two_hosts_wait_for_no_other_but_the_workload() -> None:
    fleet = by_day()
    todo: Plan = plan(fleet, night(fleet))
    assert todo.needs[Suspend.of("worker-1")] == {Drain.of("worker-1")}
