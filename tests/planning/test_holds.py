"""What a person holds does not move, what needs its card waits, and the rest goes on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.fleets import (
    CATALOGUE,
    HALF,
    WHOLE,
    card,
    day_and_night,
    fleet,
    fleets_and_wishes,
    pod,
    timetable,
    with_node,
    with_worker,
    worker,
)
from tests.support.fleets import node as a_node
from tests.support.planned import Case, closed_subsets
from vgpuctl.model.fleet import Fleet, Power, Task, Worker
from vgpuctl.model.hold import BY, HOLD, SINCE, UNTIL, WHY, Hold, hold_annotations, read_hold
from vgpuctl.model.orders import Maintenance, Orders
from vgpuctl.model.record import LEAVING, Record
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wish import Wish, WorkloadWish
from vgpuctl.planning.checks.card_room import against_room
from vgpuctl.planning.holds import MOST_WAYS, Blocked, holds_end, with_holds
from vgpuctl.planning.planner import plan
from vgpuctl.planning.wishes import switch_wish

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
EVENING = NOW + timedelta(hours=6)
ANNA = Hold(who="anna", reason="driver test")


def held(some: Fleet, *names: str, hold: Hold = ANNA) -> Fleet:
    for name in names:
        some = with_node(some, name, hold=hold)
    return some


def moved(some: Fleet, wish: Wish) -> set[str]:
    return {step.subject for step in plan(some, wish)}


def refused(some: Fleet, wish: Wish, host: str) -> bool:
    workers = [each for each in some.on_host(host) if each.name in wish.workers]
    return any(against_room(some, wish, some.hosts[host], workers))


# What annotations say.


@pytest.mark.parametrize("value", ["true", "TRUE", "yes", "no", "0", "driver test", " "])
def test_any_value_holds(value: str) -> None:
    assert read_hold({HOLD: value}) == Hold()


@pytest.mark.parametrize("annotations", [{}, {HOLD: ""}, {HOLD: "false"}, {BY: "anna", WHY: "x", UNTIL: "x"}])
def test_without_a_value_or_with_false_nothing_is_held(annotations: dict[str, str]) -> None:
    assert read_hold(annotations) is None


@pytest.mark.parametrize("until", ["tomorrow", "2026-11-20 18:00", "18:00", "9" * 5000, "2026-11-20T18:00:00"])
def test_a_hold_whose_end_cannot_be_read_has_no_end(until: str) -> None:
    hold = read_hold({HOLD: "true", UNTIL: until})
    assert hold is not None
    assert hold.active(NOW + timedelta(days=10_000))
    assert hold.unreadable
    assert until not in hold.unreadable


def test_a_hold_is_over_at_its_end() -> None:
    hold = Hold(until=EVENING)
    assert hold.active(EVENING - timedelta(seconds=1))
    assert not hold.active(EVENING)


def test_what_others_wrote_is_one_line_of_bounded_length() -> None:
    hold = read_hold({HOLD: "true", BY: "anna\n\nError:" + "a" * 9999, WHY: "x" * 9999})
    assert hold is not None
    assert hold.who.startswith("anna Error:")
    assert (len(hold.who), len(hold.reason)) == (256, 512)


texts = st.text(st.characters(categories=["L", "N", "P"]), max_size=20)
holds = st.builds(
    Hold, who=texts, reason=texts, until=st.none() | st.integers(0, 10**9).map(lambda s: EVENING + timedelta(seconds=s))
)


@given(holds)
def test_a_hold_is_read_as_it_was_written(hold: Hold) -> None:
    written = {key: value for key, value in hold_annotations(hold).items() if value is not None}
    assert read_hold(written) == hold
    assert set(hold_annotations(None)) == {HOLD, UNTIL, BY, WHY, SINCE} >= set(written)


# What a hold does to a wish.


def test_the_worker_that_needs_the_held_card_stays_asleep_and_nothing_leaves_for_it() -> None:
    by_day, wish = day_and_night()
    left, blocked = with_holds(held(by_day, "worker-1", hold=replace(ANNA, until=EVENING)), wish, NOW)
    assert left.workers == {}
    assert [(each.host, each.until, set(each.workers)) for each in blocked] == [("esx-1", EVENING, set(wish.workers))]
    at = EVENING.astimezone().strftime("%H:%M")
    assert blocked[0].sentence == (
        f"worker-5 stays asleep: worker-1 keeps its card, held by anna until {at} (driver test); "
        "worker-[2-4] stay awake"
    )


def two_cards() -> tuple[Fleet, Wish]:
    """By day two halves on each card; by night one whole card each."""
    day = [worker(f"worker-{n}", HALF, node=a_node(f"worker-{n}", pods=(pod(f"p{n}"),))) for n in range(1, 5)]
    night = [worker(f"worker-{n}", WHOLE, on=False, power=Power.SUSPENDED) for n in (5, 6)]
    cards = [card(0, "worker-1", "worker-2"), card(1, "worker-3", "worker-4")]
    some = fleet(*day, *night, cards={"esx-1": cards})
    table = timetable(day=("worker-1", "worker-2", "worker-3", "worker-4"), night=("worker-5", "worker-6"))
    return some, switch_wish(some, CATALOGUE, table, "night")


def test_what_finds_room_beside_the_hold_proceeds_and_only_its_card_is_emptied() -> None:
    some, wish = two_cards()
    some = held(some, "worker-1")
    left, blocked = with_holds(some, wish, NOW)
    assert moved(some, left) == {"worker-3", "worker-4", "worker-5"}
    assert blocked[0].sentence == (
        "worker-6 stays asleep: worker-1 keeps its card, held by anna (driver test); worker-2 stays awake"
    )


def test_several_holds_are_named_together_and_apart_if_their_reasons_differ() -> None:
    some, wish = two_cards()
    some = held(held(some, "worker-1", "worker-2"), "worker-3", hold=Hold())
    assert with_holds(some, wish, NOW)[1][0].sentence == (
        "worker-5 worker-6 stay asleep: worker-1 worker-2 keep their cards, held by anna (driver test) and worker-3 "
        "keeps its card, held; worker-4 stays awake"
    )


def test_a_held_sleeper_blocks_only_what_would_leave_for_it() -> None:
    some, wish = two_cards()
    some = held(some, "worker-5")
    left, blocked = with_holds(some, wish, NOW)
    assert moved(some, left) in ({"worker-1", "worker-2", "worker-6"}, {"worker-3", "worker-4", "worker-6"})
    assert blocked[0].sentence.startswith("worker-5 stays asleep, held by anna (driver test); ")
    assert blocked[0].sentence.endswith(" stay awake")


def test_a_hold_on_what_would_not_move_blocks_nothing() -> None:
    by_day, _ = day_and_night()
    names = tuple(f"worker-{n}" for n in range(1, 5))
    again = switch_wish(by_day, CATALOGUE, timetable(day=names, night=("worker-5",)), "day")
    again = replace(again, workers={name: mine for name, mine in again.workers.items() if name != "worker-5"})
    left, blocked = with_holds(held(by_day, "worker-1"), again, NOW)
    assert set(left.workers) == {"worker-2", "worker-3", "worker-4"}
    assert blocked == ()


def test_without_any_start_on_the_host_the_others_sleep_as_wished() -> None:
    by_day, _ = day_and_night()
    rest = switch_wish(by_day, CATALOGUE, timetable(rest=(), all=tuple(by_day.workers)), "rest")
    some = held(by_day, "worker-1")
    left, blocked = with_holds(some, rest, NOW)
    assert moved(some, left) == {"worker-2", "worker-3", "worker-4", "worker-5"}
    assert blocked[0].sentence == "worker-1 stays awake, held by anna (driver test)"


def test_a_hold_that_has_ended_holds_nothing() -> None:
    by_day, wish = day_and_night()
    assert with_holds(held(by_day, "worker-1", hold=Hold(until=NOW)), wish, NOW) == (wish, ())


def test_maintenance_holds_every_worker_of_its_host_until_it_ends() -> None:
    by_day, wish = day_and_night()
    order = Maintenance(host="esx-1", who="bert", since=NOW, until=EVENING, reason="new card")
    some = replace(by_day, orders=Orders(maintenance={"esx-1": order}))
    left, blocked = with_holds(some, wish, NOW)
    assert left.workers == {}
    at = EVENING.astimezone().strftime("%H:%M")
    assert blocked[0].sentence == (
        f"worker-[1-4] stay awake and worker-5 stays asleep, under maintenance by bert until {at} (new card)"
    )
    assert with_holds(some, wish, EVENING) == (wish, ())


def test_a_worker_that_was_cordoned_for_a_start_that_now_waits_is_uncordoned() -> None:
    by_day, wish = day_and_night()
    record = Record(wish="night", state=LEAVING, since="", cordoned=True)
    some = with_node(held(by_day, "worker-1"), "worker-2", unschedulable=True, record=record)
    left, _ = with_holds(some, wish, NOW)
    assert plan(some, left).ids == {StepId("Uncordon", "worker-2")}


def test_workers_that_have_begun_to_leave_are_the_ones_that_go_on() -> None:
    some, wish = two_cards()
    record = Record(wish="night", state=LEAVING, since="", cordoned=True)
    for name in ("worker-1", "worker-2"):
        some = with_node(some, name, unschedulable=True, record=record)
    assert moved(some, with_holds(held(some, "worker-5"), wish, NOW)[0]) == {"worker-1", "worker-2", "worker-6"}
    for name in ("worker-1", "worker-2"):
        some = with_node(some, name, unschedulable=False, record=None)
    for name in ("worker-3", "worker-4"):
        some = with_node(some, name, unschedulable=True, record=record)
    assert moved(some, with_holds(held(some, "worker-5"), wish, NOW)[0]) == {"worker-3", "worker-4", "worker-6"}


def test_where_vcenter_shows_no_host_nothing_is_said_of_room() -> None:
    by_day, wish = day_and_night()
    some = replace(held(by_day, "worker-1"), hosts={})
    assert with_holds(some, wish, NOW)[1][0].sentence == "worker-1 stays awake, held by anna (driver test)"


def test_no_workload_is_scaled_for_workers_that_all_stay() -> None:
    by_day, wish = day_and_night()
    wish = replace(wish, workloads={"deployment/default/web": WorkloadWish(asleep=True)})
    assert with_holds(held(by_day, "worker-1"), wish, NOW)[0].workloads == {}


def test_a_wish_that_has_no_room_anyway_keeps_its_own_refusal() -> None:
    by_day, wish = day_and_night()
    some = with_worker(by_day, "worker-5", vgpus=(WHOLE, WHOLE))
    left, blocked = with_holds(held(some, "worker-1"), wish, NOW)
    assert set(left.workers) == {"worker-2", "worker-3", "worker-4", "worker-5"}
    assert blocked[0].sentence == "worker-1 stays awake, held by anna (driver test)"


def beside_a_held_card(*night: Worker) -> tuple[Fleet, Wish, tuple[Blocked, ...]]:
    """One free card and one whose worker is to leave, but is held; by night, these workers fit on both."""
    some = fleet(worker("day", WHOLE), *night, cards={"esx-1": [card(0), card(1, "day")]})
    wish = switch_wish(some, CATALOGUE, timetable(night=tuple(w.name for w in night), day=("day",)), "night")
    assert not refused(some, wish, "esx-1")
    some = held(some, "day")
    return some, *with_holds(some, wish, NOW)


def test_the_fewest_workers_stay_asleep() -> None:
    night = [worker("night-0", WHOLE, on=False), *(worker(f"night-{n}", on=False) for n in range(1, 4))]
    some, left, blocked = beside_a_held_card(*night)
    assert moved(some, left) == {"night-1", "night-2", "night-3"}
    assert blocked[0].sentence == "night-0 stays asleep: day keeps its card, held by anna (driver test)"


@pytest.mark.parametrize("apart_mib", [0, 1])
def test_of_workers_with_the_same_needs_the_last_stay_asleep(apart_mib: int) -> None:
    """With memories of their own, no two are alike, and the ways to choose them are too many to compare."""
    night = [worker(f"night-{n}", on=False, memory_mib=apart_mib * n) for n in range(8)]
    assert 8 < MOST_WAYS < 2**8
    some, left, _ = beside_a_held_card(*night)
    assert moved(some, left) == {"night-0", "night-1", "night-2", "night-3"}


@pytest.mark.parametrize("apart_mib", [0, 1])
def test_a_start_that_is_under_way_is_not_the_one_that_waits(apart_mib: int) -> None:
    task = Task(key="task-1", kind="powerOn", running=True)
    night = [worker(f"night-{n}", on=False, memory_mib=apart_mib * n) for n in range(8)]
    some, left, _ = beside_a_held_card(*night[:7], replace(night[7], tasks=(task,)))
    assert "night-7" in moved(some, left)


def test_the_first_end_of_all_holds_is_when_a_look_is_due() -> None:
    by_day, _ = day_and_night()
    assert holds_end(held(by_day, "worker-1")) is None
    later = held(by_day, "worker-1", hold=Hold(until=EVENING + timedelta(hours=1)))
    assert holds_end(held(later, "worker-2", hold=Hold(until=EVENING))) == EVENING


# The same over fleets in any state.


@st.composite
def held_fleets(draw: st.DrawFn) -> Case:
    some, wish = draw(fleets_and_wishes())
    names = draw(st.lists(st.sampled_from(sorted(some.workers)), unique=True)) if some.workers else []
    return held(some, *names), wish


def by_host(some: Fleet, wish: Wish) -> dict[str, set[StepId]]:
    found: dict[str, set[StepId]] = {host: set() for host in some.hosts}
    for step in plan(some, wish):
        if host := some.host_of(step.subject):
            found[host].add(step.id)
    return found


@given(held_fleets())
def test_no_held_worker_has_a_step_and_other_hosts_plan_as_before(case: Case) -> None:
    some, wish = case
    left, blocked = with_holds(some, wish, NOW)
    assert not any(each.hold and each.name in moved(some, left) for each in some.workers.values())
    concerned = {each.host for each in some.workers.values() if each.hold}
    before, after = by_host(some, wish), by_host(some, left)
    assert {host: steps for host, steps in before.items() if host not in concerned} == {
        host: steps for host, steps in after.items() if host not in concerned
    }
    assert {each.host for each in blocked} <= concerned


@given(held_fleets())
def test_no_hold_makes_a_wish_lack_room(case: Case) -> None:
    some, wish = case
    left, _ = with_holds(some, wish, NOW)
    for host in some.hosts:
        assert refused(some, wish, host) or not refused(some, left, host)


@given(held_fleets())
def test_where_a_start_waits_each_worker_that_leaves_is_needed(case: Case) -> None:
    some, wish = case
    left, blocked = with_holds(some, wish, NOW)
    for each in blocked:
        waiting = any(wish.workers[name].awake and not some.worker(name).on for name in each.workers)
        leaving = [w.name for w in some.on_host(each.host) if w.on and w.name in left.workers]
        for name in (name for name in leaving if left.workers[name].awake is False):
            without = left.only(set(left.workers) - {name})
            assert not waiting or refused(some, without, each.host)


@given(held_fleets())
def test_wherever_it_stops_the_same_rest_is_found_again(case: Case) -> None:
    some, wish = case
    left, _ = with_holds(some, wish, NOW)
    assume(not any(refused(some, wish, host) for host in some.hosts))
    todo = plan(some, left)
    for done in closed_subsets(todo):
        later = todo.applied_to(some, done)
        again, _ = with_holds(later, wish, NOW)
        assert plan(later, again).ids == todo.ids - done
