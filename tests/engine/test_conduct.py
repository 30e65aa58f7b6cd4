"""What a timetable decides besides who is awake: how they sleep, and what follows a stuck drain or a failed resume."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.support.fleets import (
    CATALOGUE,
    WHOLE,
    budget,
    day_and_night,
    fleet,
    night_wish,
    node,
    pod,
    timetable,
    with_node,
    with_worker,
    worker,
)
from tests.support.virtual import VirtualWorld
from vgpuctl.basics.names import Names
from vgpuctl.engine.dispatcher import Send
from vgpuctl.engine.reactor import Goal
from vgpuctl.model.conduct import Asleep, Conduct, Mode, OnResumeFailed, OnStuck
from vgpuctl.model.fleet import Fleet, Power, Task
from vgpuctl.model.pods import Demand
from vgpuctl.model.requests import PowerOnVm, SuspendVm
from vgpuctl.model.timetable import DrainOptions, Shift, Timetable
from vgpuctl.model.wait import Reason
from vgpuctl.operations import look_ahead
from vgpuctl.planning.steps import Drain
from vgpuctl.planning.wishes import Provisioning, former_wish, provision_wish, switch_wish
from vgpuctl.reporting.pending_pods import waiting
from vgpuctl.reporting.timetable_state import state_of
from vgpuctl.reporting.waits import sentence

DAY, NIGHT = {f"worker-{n}" for n in range(1, 5)}, {"worker-5"}


def night(by_day: Fleet, conduct: Conduct, **more: object) -> VirtualWorld:
    wish = night_wish(by_day, DrainOptions(timeout_s=60), conduct)
    return VirtualWorld(by_day, Goal(wish=wish, former=former_wish(wish)), **more)  # type: ignore[arg-type]


def held_by_a_budget() -> Fleet:
    by_day, _ = day_and_night()
    by_day = with_node(by_day, "worker-2", pods=(pod("gateway", "worker-2", labels={"app": "gateway"}),))
    return replace(by_day, budgets=(budget("gateway", 0, app="gateway"),))


def test_a_stuck_drain_may_be_waited_for_however_long_it_takes() -> None:
    world = night(held_by_a_budget(), Conduct(on_stuck=OnStuck.WAIT))
    decision = world.run(until_s=3600)
    assert not decision.finished
    assert "waits for budget gateway" in sentence(decision.waits[Drain.of("worker-2")])
    world.fleet = replace(world.fleet, budgets=(budget("gateway", 1, app="gateway"),))
    assert world.run().finished
    assert (world.awake(), world.broken) == (NIGHT, [])


def test_by_force_only_what_budgets_still_hold_is_deleted_and_only_at_the_deadline() -> None:
    world = night(held_by_a_budget(), Conduct(on_stuck=OnStuck.FORCE))
    world.run(until_s=59)
    assert not any("delete" in key for _, key in world.sent)
    assert world.run().finished
    assert [key for _, key in world.sent if "delete" in key] == ["Drain/worker-2/delete uid-gateway"]
    assert (world.awake(), world.broken) == (NIGHT, [])


def refused(send: Send, worker: str, *, own: bool) -> Task | None:
    if isinstance(send.request, PowerOnVm) and send.request.worker == worker:
        return Task(key="task-bad", kind="powerOn", running=False, fault="Fault", message="no way", own=own)
    return None


def resume_fails(own: bool, conduct: OnResumeFailed) -> VirtualWorld:
    by_day, _ = day_and_night()
    world = night(by_day, Conduct(on_resume_failed=conduct))

    def fail(send: Send) -> Task | None:
        suspended = world.fleet.worker("worker-5").power is Power.SUSPENDED
        return refused(send, "worker-5", own=own) if suspended else None

    world.fail = fail
    return world


def test_a_suspended_state_that_cannot_be_resumed_is_discarded_where_that_is_allowed() -> None:
    world = resume_fails(own=True, conduct=OnResumeFailed.BOOT)
    assert world.run().finished
    assert [key for _, key in world.sent if "Discard" in key] == ["Discard/worker-5/power-off"]
    assert (world.awake(), world.broken) == (NIGHT, [])


@pytest.mark.parametrize(("own", "conduct"), [(True, OnResumeFailed.BACK), (False, OnResumeFailed.BOOT)])
def test_a_state_is_kept_where_nobody_allowed_that_or_the_reason_lies_elsewhere(
    own: bool, conduct: OnResumeFailed
) -> None:
    world = resume_fails(own=own, conduct=conduct)
    decision = world.run()
    assert decision.finished
    assert "esx-1" in decision.state.going_back
    assert not any("Discard" in key for _, key in world.sent)
    assert world.fleet.worker("worker-5").power is Power.SUSPENDED
    assert (world.awake(), world.broken) == (DAY, [])


def test_workers_may_sleep_shut_down() -> None:
    by_day, _ = day_and_night()
    world = night(by_day, Conduct(asleep=Asleep.OFF))
    assert world.run().finished
    assert {w.power for w in world.fleet.workers.values() if w.name in DAY} == {Power.OFF}
    assert not any(key.startswith("Suspend") for _, key in world.sent)
    assert (world.awake(), world.broken) == (NIGHT, [])


def replacing_table() -> Timetable:
    quarter, whole = CATALOGUE.profile("v100-4q-4GB"), CATALOGUE.profile("v100-16q-16GB")
    every, first = Names(("worker-*",)), Names(("worker-1",))
    shifts = {
        "day": Shift("day", ("0 8 * * *",), workers=every, carrying=((every, quarter),)),
        "night": Shift("night", ("0 20 * * *",), workers=first, carrying=((first, whole),)),
    }
    return replace(timetable(), shifts=shifts, mode=Mode.REPLACE, conduct=Conduct(asleep=Asleep.OFF))


def replacing() -> tuple[Fleet, VirtualWorld]:
    """Four quarters by day; at night the first of the same VMs carries the whole card."""
    names = [f"worker-{n}" for n in range(1, 5)]
    by_day = fleet(*(worker(name, node=node(name, pods=(pod(f"on-{name}", name),))) for name in names))
    wish = switch_wish(by_day, CATALOGUE, replacing_table(), "night")
    assert look_ahead(by_day, wish).refusals == ()
    return by_day, VirtualWorld(by_day, Goal(wish=wish, former=former_wish(wish)))


def test_the_same_vm_may_carry_another_profile_at_night() -> None:
    _, world = replacing()
    assert world.run().finished
    assert world.awake() == {"worker-1"}
    assert world.fleet.worker("worker-1").vgpus == (WHOLE,)
    assert world.fleet.worker("worker-1").node.labels["vgpu.type"] == "v100-16q-16GB"  # type: ignore[union-attr]
    assert world.broken == []


def test_a_replacement_that_cannot_start_gives_every_vm_back_what_it_carried() -> None:
    by_day, world = replacing()

    def fail(send: Send) -> Task | None:
        return refused(send, "worker-1", own=True) if world.fleet.worker("worker-1").vgpus == (WHOLE,) else None

    world.fail = fail
    decision = world.run()
    assert decision.finished
    assert "esx-1" in decision.state.going_back
    carried = {name: w.vgpus for name, w in world.fleet.workers.items()}
    assert carried == {name: w.vgpus for name, w in by_day.workers.items()}
    assert (world.awake(), world.broken) == (set(by_day.workers), [])


def two_hosts() -> tuple[Fleet, set[str]]:
    one, _ = day_and_night()
    other = [
        replace(w, name=f"b-{w.name}", vm=f"vm-b-{w.name}", host="esx-2", node=node(f"b-{w.name}"))
        for w in one.workers.values()
    ]
    return fleet(*one.workers.values(), *other), DAY | {f"b-{name}" for name in DAY}


@pytest.mark.parametrize("all_or_nothing", [True, False])
def test_where_it_is_all_or_nothing_one_host_that_fails_takes_all_back(all_or_nothing: bool) -> None:
    both, day = two_hosts()
    conduct = Conduct(all_or_nothing=all_or_nothing)
    table = timetable(conduct=conduct, day=tuple(day), night=("worker-5", "b-worker-5"))
    wish = switch_wish(both, CATALOGUE, table, "night")

    def refuse(send: Send, nth: int) -> tuple[str, bool] | None:
        # The second host fails late: the first has come to its night already.
        if isinstance(send.request, PowerOnVm) and send.request.worker == "b-worker-5":
            assert world.now_s < 30 or world.fleet.worker("worker-5").node.record is None  # type: ignore[union-attr]
            return ("not yet", True) if world.now_s < 30 else ("no", False)
        return None

    goal = Goal(wish=wish, former=former_wish(wish))
    world = VirtualWorld(both, goal, refuse=refuse)
    decision = world.run()
    assert decision.finished
    assert world.awake() == (day if all_or_nothing else NIGHT | {name for name in day if name.startswith("b-")})
    assert set(decision.state.going_back) == ({"esx-1", "esx-2"} if all_or_nothing else {"esx-2"})
    assert world.broken == []


def test_provision_leaves_what_the_shift_gave() -> None:
    _, world = replacing()
    world.run()
    quarter, whole = CATALOGUE.profile("v100-4q-4GB"), CATALOGUE.profile("v100-16q-16GB")
    how = Provisioning(exchanged=lambda name: (quarter, whole))
    assert not look_ahead(world.fleet, provision_wish(world.fleet, CATALOGUE, how)).plan
    without = look_ahead(world.fleet, provision_wish(world.fleet, CATALOGUE, Provisioning()))
    assert {step.subject for step in without.plan} == {"worker-1"}


@pytest.mark.parametrize("limit", [{"suspends_a_host": 2}, {"suspends_a_datastore": 2}])
def test_only_so_many_are_suspended_at_once(limit: dict[str, int]) -> None:
    by_day, _ = day_and_night()
    for name in DAY:
        by_day = with_worker(by_day, name, datastore="store")
    world = night(by_day, Conduct(**limit))  # type: ignore[arg-type]
    at_once: list[int] = []

    def look(send: Send, nth: int) -> None:
        if isinstance(send.request, SuspendVm):
            tasks = [w.busy_with for w in world.fleet.workers.values()]
            at_once.append(1 + sum(task is not None and task.kind == "suspend" for task in tasks))

    world.refuse = look
    decision = world.run(until_s=world.drain_s + 1.0)
    waits = [wait for wait in decision.waits.values() if wait.reason is Reason.TURN]
    assert len(waits) == 2
    assert world.run().finished
    assert max(at_once) == 2
    assert (world.awake(), world.broken) == (NIGHT, [])
    assert world.now_s < 2 * world.suspend_s + world.drain_s + world.start_s + world.back_s + 1


def test_waiting_for_a_turn_takes_nothing_off_a_steps_own_time() -> None:
    by_day, _ = day_and_night()
    world = night(by_day, Conduct(suspends_a_host=1), suspend_s=1000.0)
    assert world.run(until_s=4 * 1000 + 100).finished
    assert (world.awake(), world.broken) == (NIGHT, [])


def test_who_carries_this_and_that_by_turns_is_waited_for_by_what_comes() -> None:
    by_day, world = replacing()
    table = replacing_table()
    now = datetime(2026, 11, 18, 12, tzinfo=UTC)
    waiter = replace(pod("bert", phase="Pending"), selector={"vgpu.type": "v100-16q-16GB"}, demand=Demand(gpus=1))
    (found,) = waiting(replace(by_day, waiting=(waiter,)), CATALOGUE, (state_of(by_day, table, now),))
    assert found.outlook.waking is not None
    assert (found.outlook.awake, found.outlook.waking.shift, found.outlook.waking.start.hour) == (False, "night", 20)
    assert world.run().finished
    (found,) = waiting(replace(world.fleet, waiting=(waiter,)), CATALOGUE, (state_of(world.fleet, table, now),))
    assert found.outlook.awake
