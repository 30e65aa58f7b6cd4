"""A running plan on a terminal: whatever its size, nothing runs over its edges, and the last line sums up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fleets import CATALOGUE, budget, day_and_night, fleet, node, pod, with_node, worker
from tests.support.virtual import VirtualWorld
from vgpuctl.cli.acting.progress import Lines
from vgpuctl.cli.acting.progress_view import ProgressView
from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.engine.reactor import Decision, Goal
from vgpuctl.engine.runner import Progress
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.model.wish import Wish
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import Drain, WaitBack
from vgpuctl.planning.wishes import Provisioning, provision_wish


def at(second: float, some: Fleet, wish: Wish, **done: float) -> Progress:
    world = VirtualWorld(some, Goal(wish=wish))
    decision = world.run(until_s=second)
    return progress(world, decision, some, **done)


def progress(world: VirtualWorld, decision: Decision, some: Fleet, **done: float) -> Progress:
    seen = {StepId.read(name.replace("__", "/").replace("_", "-")): took_s for name, took_s in done.items()}
    first = plan(some, world.goal.wish)
    return Progress(first=first, decision=decision, fleet=world.fleet, done=seen, elapsed_s=world.now_s)


def shown(seen: Progress, width: int = 80, height: int = 24) -> list[str]:
    return [line.plain for line in ProgressView(seen, "*").lines(width, height)]


def many(hosts: int, each: int) -> tuple[Fleet, Wish]:
    names = [(f"esx-{h}", f"worker-{h}-{n}") for h in range(1, hosts + 1) for n in range(each)]
    some = fleet(*(worker(name, host=host, vgpus=(), node=node(name)) for host, name in names))
    return some, provision_wish(some, CATALOGUE, Provisioning(max_unavailable=hosts * each))


def test_a_line_a_worker_and_one_that_sums_up() -> None:
    some, wish = day_and_night()
    assert shown(at(1.5, some, wish, Drain__worker_1=12.4)) == [
        "esx-1 · V100-16 0000:3b:00",
        "  worker-1   ✓ drained 12 s   * draining: 1 pod to go",
        "  worker-2   * draining: 1 pod to go",
        "  worker-3   * draining: 1 pod to go",
        "  worker-4   * draining: 1 pod to go",
        "  worker-5   · waits for the card",
        "0 of 5 · 2 s    Ctrl-C stops after this step",
    ]


def test_on_a_second_try_the_others_say_which_worker_they_wait_for() -> None:
    some, wish = day_and_night(budgets=(budget("notebooks", 0),))
    seen = at(1.5, some, replace(wish, drain_first=frozenset({"uid-notebook-2"})))
    assert shown(seen, width=120)[1:4] == [
        "  worker-1   · waits until worker-2 has drained the pods it failed on",
        "  worker-2   * draining first the pods it failed on: notebook-2 waits for budget notebooks (0 of 0 left)",
        "  worker-3   · waits until worker-2 has drained the pods it failed on",
    ]


def test_of_what_was_done_the_latest_is_shown_and_of_what_is_being_done_every_word() -> None:
    some, wish = day_and_night()
    done = {f"{kind}__worker_1": 90.0 for kind in ("Drain", "WaitDetached", "Suspend", "PowerOn")}
    first, second, *_ = shown(at(1.5, some, wish, **done), width=60)[1:]
    assert first == "  worker-1   ✓ started 1 min 30 s   * draining: 1 pod to go"
    assert second.startswith("  worker-2 ")
    told = shown(at(1.5, some, wish), width=40)
    assert told[1:3] == ["  worker-1   * draining: 1 pod to go", "  worker-2   * draining: 1 pod to go"]


def test_a_sentence_that_is_too_long_goes_on_below_itself() -> None:
    some, wish = day_and_night()
    seen = at(1.5, some, wish)
    long = "gateway-7f9 waits for the budget gateway, of which none is left for a while"
    waits = {**seen.decision.waits, Drain.of("worker-1"): Wait.of(Reason.DOUBT, long)}
    lines = shown(replace(seen, decision=replace(seen.decision, waits=waits)))
    assert lines[1:3] == [
        "  worker-1   * draining: gateway-7f9 waits for the budget gateway, of which none",
        "             is left for a while",
    ]


def test_who_stopped_it_sees_where_each_stands() -> None:
    some, wish = day_and_night()
    world = VirtualWorld(some, Goal(wish=wish))
    world.run(until_s=4.0)
    world.state = replace(world.state, stopping=True)
    ending = world.run(until_s=4.0)
    assert "  worker-1   * suspending" in shown(progress(world, ending, some))
    lines = shown(progress(world, world.run(), some))
    assert lines[1] == "  worker-1   · stopped before: mark asleep"
    assert lines[-1].endswith("    stopped")


def test_more_workers_than_fit_are_told_host_by_host() -> None:
    some, wish = many(hosts=6, each=20)
    lines = shown(at(0.0, some, wish))
    assert len(lines) == 7
    assert lines[0] == "esx-1 · V100-16 0000:3b:00   0 of 20   20 cordoning"
    assert lines[-1] == "0 of 120 · 0 s    Ctrl-C stops after this step"


def test_where_hosts_are_too_many_those_at_work_come_first() -> None:
    some, wish = many(hosts=60, each=2)
    seen = at(0.0, some, wish)
    left = replace(
        seen.decision.plan, steps=tuple(s for s in seen.decision.plan if not s.subject.startswith("worker-1-"))
    )
    lines = shown(replace(seen, decision=replace(seen.decision, plan=left)))
    assert len(lines) == 24
    assert lines[0].startswith("esx-2 ")
    assert lines[-2] == "… 38 more hosts, 1 of them done"
    assert lines[-1].startswith("2 of 120 ")


@pytest.mark.parametrize("stopping", [False, True])
@given(
    hosts=st.integers(1, 9),
    each=st.integers(1, 9),
    size=st.tuples(st.integers(30, 120), st.integers(3, 60)),
    second=st.integers(0, 30),
)
def test_it_always_fits(stopping: bool, hosts: int, each: int, size: tuple[int, int], second: int) -> None:
    width, height = size
    some, wish = many(hosts, each)
    some = with_node(some, "worker-1-0", pods=(pod("a-pod-of-a-name-as-long-as-they-are-in-practice", "worker-1-0"),))
    world = VirtualWorld(some, Goal(wish=wish))
    world.run(until_s=second / 2)
    world.state = replace(world.state, stopping=stopping)
    lines = shown(progress(world, world.run(until_s=second), some), width, height)
    assert len(lines) <= height
    assert all(len(line) <= width or " " not in line.strip() for line in lines)
    assert " of " in lines[-1] and " · " in lines[-1]


def test_a_log_reports_a_wait_once_it_has_lasted_half_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    some, wish = day_and_night()
    begun, log = at(1.5, some, wish), Lines(SafeConsole())
    waits = {WaitBack.of("worker-5"): Wait.of(Reason.NOT_BACK, "its driver reports no GPU yet")}
    for elapsed_s in (0.0, 29.0, 31.0, 60.0):
        log.progress(replace(begun, decision=replace(begun.decision, waits=waits), elapsed_s=elapsed_s))
        said = capsys.readouterr().out
        assert said.endswith("worker-5 coming back: its driver reports no GPU yet\n") == (elapsed_s == 31.0)


def test_a_log_reports_a_budget_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    some, wish = day_and_night()
    begun = at(1.5, some, wish)
    waits = {Drain.of("worker-1"): Wait.of(Reason.BUDGET, "gateway-1", "gateway")}
    Lines(SafeConsole()).progress(replace(begun, decision=replace(begun.decision, waits=waits)))
    assert "worker-1 draining: gateway-1 waits for budget gateway" in capsys.readouterr().out
