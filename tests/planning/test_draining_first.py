"""The rung of a second try: the pods that the first one failed on leave before any other pod of their host."""

from __future__ import annotations

import io
from dataclasses import replace

from tests.support.fleets import CATALOGUE, day_and_night, fleet, node, pod, timetable, worker
from vgpuctl.cli.acting.plans import show_plan
from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.model.conduct import Conduct, OnStuck
from vgpuctl.model.fleet import Node
from vgpuctl.model.plan import Plan
from vgpuctl.operations import look_ahead
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import Cordon, Drain, DrainFirst
from vgpuctl.planning.wishes import former_wish, switch_wish


def again(*uids: str) -> Plan:
    by_day, wish = day_and_night()
    return plan(by_day, replace(wish, drain_first=frozenset(uids)))


def test_all_other_drains_of_the_host_wait_for_all_its_first_pods() -> None:
    todo = again("uid-notebook-2", "uid-notebook-3")
    first = {DrainFirst.of("worker-2"), DrainFirst.of("worker-3")}
    for name in ("worker-1", "worker-4"):
        assert first <= todo.needs[Drain.of(name)]
    for step in first:
        assert todo.needs[step] == {Cordon.of(f"worker-{n}") for n in range(1, 5)}
    assert not {Drain.of("worker-2"), Drain.of("worker-3")} & todo.ids, "no other pod is on these"


def test_a_drain_of_another_host_waits_for_no_pod_of_this_one() -> None:
    one, other = (worker(f"{host}-w", host=host, node=with_pod(f"{host}-w")) for host in ("esx-1", "esx-2"))
    by_day = fleet(one, other)
    wish = switch_wish(by_day, CATALOGUE, timetable(day=("esx-1-w", "esx-2-w"), night=()), "night")
    todo = plan(by_day, replace(wish, drain_first=frozenset({"uid-p-esx-1-w"})))
    assert DrainFirst.of("esx-1-w") in todo.ids
    assert not {need for need in todo.needs[Drain.of("esx-2-w")] if need.kind == DrainFirst.__name__}


def with_pod(name: str, *more: str) -> Node:
    return node(name, pods=tuple(pod(each, name) for each in (f"p-{name}", *more)))


def test_a_uid_that_is_gone_changes_nothing() -> None:
    assert again("uid-of-another").ids == again().ids


def test_one_at_once_the_worker_with_such_a_pod_goes_first_and_waves_stay_waves() -> None:
    names = ("a", "b", "c")
    by_day = fleet(*(worker(name, node=with_pod(name, f"q-{name}")) for name in names))
    wish = switch_wish(by_day, CATALOGUE, timetable(day=names, night=()), "night")
    wish = replace(wish, max_unavailable=1, drain_first=frozenset({"uid-p-b", "uid-p-c"}))
    todo, done = plan(by_day, wish), set[str]()
    for step in todo:
        assert todo.needs[step.id] <= done, "nothing waits for a later wave"
        done.add(step.id)
    cordons = [step.subject for step in todo if isinstance(step, Cordon)]
    assert cordons == ["b", "c", "a"]


def test_the_way_back_has_no_first_pods() -> None:
    _, wish = day_and_night()
    assert former_wish(replace(wish, drain_first=frozenset({"uid-notebook-1"}))).drain_first == frozenset()


def test_it_may_take_as_long_as_a_drain_and_ends_as_one() -> None:
    by_day, wish = day_and_night()
    for on_stuck in OnStuck:
        forced = replace(wish, conduct=Conduct(on_stuck=on_stuck))
        usual = next(step for step in plan(by_day, forced) if step.id == Drain.of("worker-1"))
        first = next(
            step
            for step in plan(by_day, replace(forced, drain_first=frozenset({"uid-notebook-1"})))
            if isinstance(step, DrainFirst)
        )
        assert (first.deadline_s, first.overdue_after_s) == (usual.deadline_s, usual.overdue_after_s)
        assert first.overdue(by_day) == usual.overdue(by_day)


def test_a_plan_names_them_and_counts_each_pod_once() -> None:
    by_day = fleet(worker("a", node=with_pod("a", "q-a")))
    wish = switch_wish(by_day, CATALOGUE, timetable(day=("a",), night=()), "night")
    out = SafeConsole()
    out.file = shown = io.StringIO()
    show_plan(out, look_ahead(by_day, replace(wish, drain_first=frozenset({"uid-p-a"}))))
    assert "drain first the pods it failed on (p-a) → drain 1 pod (q-a) → suspend" in shown.getvalue()
    assert "2 pods leave" in shown.getvalue()
