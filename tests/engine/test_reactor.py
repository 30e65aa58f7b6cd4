"""The reactor, in virtual time: stories of one night."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.support.fleets import (
    CATALOGUE,
    WHOLE,
    budget,
    card,
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
from tests.support.unlike_hosts import chain_s, night_of, took_s
from tests.support.virtual import VirtualWorld
from vgpuctl.engine.dispatcher import Moment, Send
from vgpuctl.engine.reactor import Decision, Goal, decide
from vgpuctl.engine.run_state import Attempt, RunState
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.record import LEAVING, Record
from vgpuctl.model.requests import Evict, PatchNode
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.model.wish import Wish
from vgpuctl.planning.steps import Cordon, PowerOn, Suspend, Uncordon
from vgpuctl.planning.steps.step import node_of
from vgpuctl.planning.wishes import former_wish, switch_wish
from vgpuctl.reporting.waits import sentence

DAY = {f"worker-{n}" for n in range(1, 5)}
NIGHT = {"worker-5"}


def night(some: Fleet | None = None, wish: Wish | None = None, **more: object) -> VirtualWorld:
    by_day, for_night = day_and_night()
    wish = wish or for_night
    return VirtualWorld(some or by_day, Goal(wish=wish, former=former_wish(wish)), **more)  # type: ignore[arg-type]


def test_the_night_comes_as_fast_as_its_slowest_card() -> None:
    world = night()
    assert world.run().finished
    assert world.awake() == NIGHT
    assert world.broken == []
    assert world.now_s <= 1.05 * chain_s(world)


def test_no_host_waits_for_another() -> None:
    """64 hosts with four cards each: those whose workers leave quickly do not wait for those who do not."""
    world = night_of(64, 4)
    assert world.run().finished
    assert world.broken == []
    assert took_s(world) <= 1.10 * chain_s(world)


def test_every_request_is_sent_once() -> None:
    world = night()
    world.run()
    assert set(Counter(key for _, key in world.sent).values()) == {1}
    assert Counter(key.split("/")[0] for _, key in world.sent) == {
        "Cordon": 4,
        "Drain": 4,
        "Suspend": 4,
        "MarkAsleep": 5,
        "PowerOn": 1,
        "Uncordon": 1,
    }


def test_a_budget_paces_the_drain_and_is_never_overdrawn() -> None:
    by_day, _ = day_and_night()
    for name in sorted(DAY):
        by_day = with_node(by_day, name, pods=(pod(f"gateway-{name}", name, labels={"app": "gateway"}),))
    by_day = replace(by_day, budgets=(budget("gateway", 1, app="gateway"),))
    world = night(by_day, night_wish(by_day))
    world.run(until_s=1.0)
    assert sum(key.startswith("Drain") for _, key in world.sent) == 1
    assert world.run().finished
    assert sum(key.startswith("Drain") for _, key in world.sent) == 4
    assert world.broken == []


def test_a_drain_that_does_not_end_goes_back_and_says_why() -> None:
    by_day, _ = day_and_night()
    stuck = pod("gateway-1", "worker-2", labels={"app": "gateway"})
    by_day = replace(with_node(by_day, "worker-2", pods=(stuck,)), budgets=(budget("gateway", 0, app="gateway"),))
    world = night(by_day, night_wish(by_day, DrainOptions(timeout_s=60)))
    decision = world.run()
    assert decision.finished
    assert world.awake() == DAY
    assert "gateway-1 waits for budget gateway" in str(decision.state.going_back["esx-1"])
    assert str(decision.state.going_back["esx-1"]).endswith("; gateway-1 belongs to ReplicaSet/some")
    for name in DAY:
        left = world.fleet.worker(name).node
        assert left is not None
        assert not left.unschedulable
        assert left.record is None


def test_a_refusal_that_passes_is_tried_again() -> None:
    world = night(
        refuse=lambda send, nth: ("busy", True) if send.key.step == Suspend.of("worker-1") and nth < 3 else None
    )
    assert world.run().finished
    assert world.awake() == NIGHT
    assert sum(key == "Suspend/worker-1/" for _, key in world.sent) == 3


def test_a_server_that_asks_to_wait_is_not_asked_the_same_before() -> None:
    world = night()
    refused = Attempt(sent_s=0.0, answered_s=0.0, error="too many requests", passing=True, after_s=20.0)
    state = RunState(attempts={Cordon.of("worker-1"): {"": refused}})

    def at(now_s: float) -> Decision:
        return decide(world.goal, world.fleet, state, Moment(now_s=now_s, utc="now"))

    early = at(19.9)
    assert "Cordon/worker-1/" not in {str(send.key) for send in early.sends}
    assert "Cordon/worker-2/" in {str(send.key) for send in early.sends}
    assert sentence(early.waits[Cordon.of("worker-1")]) == "Kubernetes asks to wait 20 s"
    assert "Cordon/worker-1/" in {str(send.key) for send in at(20.0).sends}


def test_a_refusal_for_good_goes_back() -> None:
    world = night(refuse=lambda send, _: ("no space", False) if send.key.step == Suspend.of("worker-1") else None)
    decision = world.run()
    assert world.awake() == DAY
    assert "no space" in str(decision.state.going_back["esx-1"])


def test_where_going_back_fails_too_it_stops_and_reports() -> None:
    def refuse(send: Send, _: int) -> tuple[str, bool] | None:
        bad = send.key.step in {PowerOn.of("worker-5"), PowerOn.of("worker-1")}
        return ("no host", False) if bad else None

    world = night(refuse=refuse)
    decision = world.run()
    assert decision.finished
    assert set(decision.state.gave_up) == {"esx-1"}


def test_other_hosts_go_on_while_one_goes_back() -> None:
    workers = []
    for n in (1, 2):
        host, inside = f"esx-{n}", node(f"w{n}", pods=(pod(f"p{n}", f"w{n}"),))
        workers += [worker(f"w{n}", host=host, node=inside), worker(f"n{n}", WHOLE, host=host, on=False)]
    some = fleet(*workers)
    wish = switch_wish(some, CATALOGUE, timetable(day=("w1", "w2"), night=("n1", "n2")), "night")
    world = night(some, wish, refuse=lambda send, _: ("no", False) if send.key.step == Suspend.of("w1") else None)
    world.run()
    assert world.awake() == {"w1", "n2"}


def test_nothing_is_sent_while_a_server_cannot_be_heard() -> None:
    by_day, wish = day_and_night(stale=("vCenter",))
    decision = decide(Goal(wish=wish), by_day, RunState(), Moment(now_s=0, utc="now"))
    assert decision.sends == ()
    assert {sentence(wait) for wait in decision.waits.values()} == {"vCenter cannot be heard"}


def under_one_budget(allowed: int) -> Fleet:
    """All four are cordoned and have one pod each under it."""
    by_day, _ = day_and_night()
    for name in sorted(DAY):
        gateway = pod(f"gateway-{name}", name, labels={"app": "gateway"})
        record = Record(wish="night", state=LEAVING, since="", cordoned=True)
        by_day = with_node(by_day, name, pods=(gateway,), unschedulable=True, record=record)
    return replace(by_day, budgets=(budget("gateway", allowed, app="gateway"),))


def test_what_is_out_is_not_sent_again_and_spends_its_budget() -> None:
    """One allowance, four pods; before the answer, and before the budget shows it, no second eviction."""
    by_day = under_one_budget(1)
    goal = Goal(wish=night_wish(by_day))
    first = decide(goal, by_day, RunState(), Moment(now_s=0, utc="now"))
    assert sum(send.key.step.kind == "Drain" for send in first.sends) == 1
    assert decide(goal, by_day, first.state, Moment(now_s=1, utc="now")).sends == ()
    touched = replace(by_day, budgets=(replace(by_day.budgets[0], version="2"),))
    assert decide(goal, touched, first.state, Moment(now_s=1, utc="now")).sends == ()
    state = first.state
    for send in first.sends:
        state = state.answered(send.key, 1.0, error="")
    assert decide(goal, by_day, state, Moment(now_s=2, utc="now")).sends == ()


def test_an_eviction_without_effect_is_sent_again_once_another_has_left_it_its_budget() -> None:
    by_day, state = under_one_budget(1), RunState()
    goal = Goal(wish=night_wish(by_day))
    evicted = []
    for now_s in (0.0, 18.0, 20.5, 24.0):
        decision = decide(goal, by_day, state, Moment(now_s=now_s, utc="now"))
        state = decision.state
        for send in decision.sends:
            state = state.answered(send.key, now_s, error="")
        evicted.append([send.key.step.subject for send in decision.sends if isinstance(send.request, Evict)])
    assert evicted == [["worker-1"], ["worker-2"], [], ["worker-1"]]


def test_a_picture_that_cannot_be_trusted_never_means_done() -> None:
    _, wish = day_and_night()
    empty = Fleet(stale=("vCenter",))
    assert not decide(Goal(wish=wish), empty, RunState(), Moment(now_s=0, utc="now")).finished
    assert decide(Goal(wish=wish), replace(empty, stale=()), RunState(), Moment(now_s=0, utc="now")).finished


def test_a_person_who_stops_does_not_wait_for_a_server_that_is_gone() -> None:
    world = night()
    world.run(until_s=3.0)
    assert any(worker.busy_with for worker in world.fleet.workers.values())
    world.fleet = replace(world.fleet, stale=("vCenter",))
    decision = decide(world.goal, world.fleet, replace(world.state, stopping=True), Moment(now_s=3.0, utc="now"))
    assert decision.finished


def test_a_server_that_never_comes_back_is_not_waited_for_for_ever() -> None:
    by_day, wish = day_and_night(stale=("vCenter",))
    world = night(by_day, wish)
    decision = world.run()
    assert decision.finished
    assert decision.state.unheard == ("vCenter",)
    assert decision.state.gave_up == {}, "nothing failed: nothing could be seen"
    assert world.sent == []


def test_after_a_crash_it_still_knows_the_way_back() -> None:
    """Two day workers already sleep when another instance begins, and then a drain gets stuck: all four wake again."""
    by_day, _ = day_and_night()
    stuck = pod("gateway-3", "worker-3", labels={"app": "gateway"})
    by_day = replace(with_node(by_day, "worker-3", pods=(stuck,)), budgets=(budget("gateway", 0, app="gateway"),))
    world = night(by_day, night_wish(by_day))
    world.run(until_s=10.0)
    assert world.awake() == {"worker-3"}
    again = night_wish(world.fleet, DrainOptions(timeout_s=60))
    world.goal, world.state = Goal(wish=again, former=former_wish(again)), RunState()
    assert world.run().finished
    assert world.awake() == DAY


def test_an_interrupted_switch_sends_nothing_more_and_ends() -> None:
    world = night()
    world.run(until_s=3.0)
    world.state = replace(world.state, stopping=True)
    before = len(world.sent)
    assert world.run().finished
    assert len(world.sent) == before
    world.state = RunState()
    assert world.run().finished
    assert world.awake() == NIGHT


def test_who_interrupts_it_waits_for_a_guest_that_shuts_down() -> None:
    world = night()
    world.fleet = with_worker(world.fleet, "worker-1", shutting_down=True)
    world.state = RunState(stopping=True)
    assert not world.run(until_s=30.0).finished
    world._off("worker-1")
    assert world.run(until_s=31.0).finished


def test_wherever_it_is_cut_off_another_instance_goes_on() -> None:
    """A crash forgets the memory, never the world: running tasks are part of the fleet."""
    for cut in range(0, 22):
        world = night()
        world.run(until_s=cut / 2)
        world.state = RunState()
        assert world.run().finished, cut
        assert world.awake() == NIGHT
        assert world.broken == []
        tasks = Counter(key for _, key in world.sent if key.split("/")[0] in {"Suspend", "PowerOn"})
        assert set(tasks.values()) == {1}, cut


def test_old_evidence_is_not_taken_for_a_node_that_is_back() -> None:
    """A node suspended for a moment still looks Ready: only a new lease and a new status count."""
    world = night(back_s=30.0)
    world.run(until_s=20.0)
    asleep = world.fleet.worker("worker-5").node
    assert world.fleet.worker("worker-5").power is Power.ON
    assert asleep is not None
    assert asleep.ready
    assert asleep.unschedulable
    assert world.run().finished


def test_a_foreign_cordon_is_recorded_but_not_claimed() -> None:
    by_day, _ = day_and_night()
    by_day = with_node(by_day, "worker-3", unschedulable=True)
    world = night(by_day, night_wish(by_day))
    world.run()
    left = world.fleet.worker("worker-3").node
    assert left is not None
    assert left.record is not None
    assert not left.record.cordoned


def test_a_cordon_is_decided_on_the_version_that_was_seen() -> None:
    by_day, wish = day_and_night()
    decision = decide(Goal(wish=wish), by_day, RunState(), Moment(now_s=0, utc="now"))
    patches = [send.request for send in decision.sends if isinstance(send.request, PatchNode)]
    assert patches
    assert all(patch.version == "1" for patch in patches)


def test_each_card_starts_its_worker_the_moment_it_is_free() -> None:
    """Two cards, one drained late: the other's night worker does not wait for it."""
    left = [worker(f"a{n}", node=node(f"a{n}", pods=(pod(f"pa{n}", f"a{n}"),))) for n in range(4)]
    right = [worker(f"b{n}", node=node(f"b{n}", pods=(pod(f"pb{n}", f"b{n}"),))) for n in range(4)]
    wakers = [worker(name, WHOLE, power=Power.SUSPENDED) for name in ("n1", "n2")]
    cards = [card(0, *(w.name for w in left)), card(1, *(w.name for w in right))]
    some = fleet(*left, *right, *wakers, cards={"esx-1": cards})
    day = tuple(w.name for w in left + right)
    wish = switch_wish(some, CATALOGUE, timetable(day=day, night=("n1", "n2")), "night")
    slow = replace(some, budgets=(budget("held", 0, held="yes"),))
    slow = with_node(slow, "b0", pods=(pod("pb0", "b0", labels={"held": "yes"}),))
    world = night(slow, wish)
    world.run(until_s=20.0)
    assert "n1" in world.awake()
    assert world.broken == []


@pytest.mark.parametrize("meddled", [False, True], ids=["", "and somebody took our label off"])
def test_on_the_way_back_nobody_is_uncordoned_whose_suspend_may_still_come(meddled: bool) -> None:
    """vCenter took the request, but its task was not seen yet when a neighbour's failure turned the host back."""
    world = night(refuse=lambda send, nth: ("no", False) if send.key.step == Suspend.of("worker-2") else None)
    took, seen = world._carry_out, []

    def late(send: Send) -> str | None:
        if send.key.step != Suspend.of("worker-3"):
            return took(send)
        world.at(world.now_s + 2.0, lambda: seen.append(took(send)))
        if meddled and (record := node_of(world.fleet, "worker-3").record):
            world.fleet = with_node(world.fleet, "worker-3", record=replace(record, state=""))
        return "task-unseen"

    world._carry_out = late  # type: ignore[method-assign]
    decision = world.run(until_s=3.0)
    assert "esx-1" in decision.state.going_back
    assert decision.waits[Uncordon.of("worker-3")] == Wait(Reason.ABOUT_TO_STOP)
    assert world.run().finished
    assert (world.awake(), world.broken, len(seen)) == (DAY, [], 1)
    assert [key for _, key in world.sent].count("Uncordon/worker-3/") == 1
