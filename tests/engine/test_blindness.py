"""A server that is not heard: no deadline runs meanwhile, and there is an end to it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.support.fleets import day_and_night
from tests.support.virtual import VirtualWorld
from vgpuctl.engine.blindness import stopped_if_blind_too_long, with_blind_time
from vgpuctl.engine.ends import ends
from vgpuctl.engine.ports import BLIND_S
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.run_state import RunState
from vgpuctl.model.journal import INTERRUPTED
from vgpuctl.planning.steps import Drain
from vgpuctl.planning.wishes import former_wish


def silent(world: VirtualWorld, *servers: str) -> None:
    world.fleet = replace(world.fleet, stale=servers)


def night(blind_s: float = BLIND_S) -> VirtualWorld:
    by_day, wish = day_and_night()
    return VirtualWorld(by_day, Goal(wish=wish, former=former_wish(wish), blind_s=blind_s))


def test_no_deadline_runs_while_kubernetes_is_silent() -> None:
    """Five minutes of silence at any moment of a night: longer than every deadline but the drain's."""
    for begins_s in range(12):
        world = night()
        world.at(begins_s, partial(silent, world, "Kubernetes"))
        world.at(begins_s + 300, partial(silent, world))
        decision = world.run()
        assert decision.state.going_back == {}, f"silent from {begins_s} s on"
        assert world.awake() == {"worker-5"}
        assert world.broken == []


def test_nothing_is_sent_while_a_server_is_silent() -> None:
    world = night()
    world.at(2, lambda: silent(world, "vCenter"))
    world.at(302, lambda: silent(world))
    world.run()
    assert not [key for when_s, key in world.sent if 2 < when_s < 302]


def test_a_silence_that_does_not_end_ends_the_switch_in_order_and_says_whose_it_was() -> None:
    world = night()
    world.at(4, lambda: silent(world, "Kubernetes"))
    decision = world.run()
    assert decision.finished
    assert decision.state.unheard == ("Kubernetes",)
    assert BLIND_S <= world.now_s <= BLIND_S + 10
    (esx,) = ends(world.goal.wish, world.fleet, decision.state, decision.plan)
    assert esx.end == INTERRUPTED
    assert "worker-5 before resume" in esx.why


def test_how_long_it_may_be_blind_is_a_setting() -> None:
    world = night(blind_s=60.0)
    world.at(4, lambda: silent(world, "Kubernetes"))
    assert world.run().state.unheard
    assert 60 <= world.now_s <= 70


def test_silences_are_added_up() -> None:
    """Half a minute every minute: none is long, all together are."""
    world = night(blind_s=120.0)
    for minute in range(10):
        world.at(60 * minute + 1, lambda: silent(world, "vCenter"))
        world.at(60 * minute + 31, lambda: silent(world))
    world.suspend_s = 600.0
    assert world.run().state.unheard == ("vCenter",)
    assert 180 <= world.now_s <= 300


def test_only_the_time_after_a_blind_look_is_left_out() -> None:
    state = with_blind_time(RunState(due_since={Drain.of("a"): 0.0}), (), 10.0)
    state = with_blind_time(state, ("vCenter",), 15.0)
    assert (state.due_since, state.blind_s) == ({Drain.of("a"): 0.0}, 0.0), "until then it was seen"
    state = with_blind_time(state, ("vCenter",), 40.0)
    state = with_blind_time(state, (), 50.0)
    assert (state.due_since, state.blind_s) == ({Drain.of("a"): 35.0}, 35.0)
    assert with_blind_time(state, (), 60.0).blind_s == 35.0


def test_whoever_sees_again_in_time_goes_on() -> None:
    late = RunState(blind_s=BLIND_S)
    assert not stopped_if_blind_too_long(late, (), BLIND_S).stopping
    assert stopped_if_blind_too_long(late, ("vCenter",), BLIND_S).unheard == ("vCenter",)
