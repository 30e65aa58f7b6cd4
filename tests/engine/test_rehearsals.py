"""Many nights in virtual time, each with its own faults: no law is ever broken, and the next run ends it well."""

from __future__ import annotations

import random

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from tests.support.trouble import NO_NIGHT, random_rule
from vgpuctl.planning.wishes import Provisioning
from vgpuctl.sim.faults import VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, default_inventory

SEEDS = [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 100))]
TRIES = 6


def a_day() -> Rehearsal:
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations())
    rehearsal.wait(60)
    return rehearsal


def test_from_an_estate_without_vgpus_to_the_day_the_night_and_the_day() -> None:
    """Two hosts with two cards each."""
    rehearsal = Rehearsal.of(default_inventory(hosts=2, cards=2), Durations())
    assert rehearsal.provision(Provisioning()).finished
    night = {f"worker-{n}" for n in (5, 10, 15, 20)}
    day = {f"worker-{n}" for n in range(1, 21)} - night
    for shift, awake in (("day", day), ("night", night), ("day", day)):
        assert rehearsal.switch(shift).finished
        assert (rehearsal.awake(), rehearsal.broken) == (awake, [])


def test_a_night_that_cannot_come_leaves_the_day_as_it_was() -> None:
    rehearsal = a_day()
    day = rehearsal.awake()
    full = Effect(how=How.TASK_FAILS, what="NoDiskSpace")
    rehearsal.world.calls.faults.add(Rule(server=VCENTER, method="SuspendVM_Task", on="worker-2", effect=full))
    ended = rehearsal.switch("night")
    assert ended.finished
    assert "NoDiskSpace" in str(ended.state.going_back["esx-1"])
    assert (rehearsal.awake(), rehearsal.cordoned() & day, rehearsal.broken) == (day, set(), [])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_night_with_faults_breaks_no_law_and_the_next_run_ends_it(seed: int) -> None:
    chance = random.Random(seed)
    rehearsal = a_day()
    day, night = rehearsal.awake(), set(rehearsal.world.inventory.workers_of("v100-16q-16GB"))
    for _ in range(chance.randrange(1, 4)):
        rehearsal.world.calls.faults.add(random_rule(chance))
    ended = rehearsal.switch("night", die_after=chance.choice([None, None, chance.randrange(1, 20)]))
    if ended.finished and not ended.state.gave_up:
        assert rehearsal.awake() == (day if ended.state.going_back else night), "all the way, or all the way back"
    for standing in rehearsal.world.calls.faults:
        rehearsal.world.calls.faults.clear(standing.id)
    rehearsal.world.estate.work.release_hung()
    rehearsal.wait(60)
    shift, expected = chance.choice([("night", night), ("day", day)])
    for _ in range(TRIES):
        if rehearsal.switch(shift).finished and rehearsal.awake() == expected:
            break
    assert rehearsal.broken == []
    assert rehearsal.awake() == expected
    assert rehearsal.cordoned() == (day | night) - expected


@pytest.mark.parametrize(
    "die_after", [14, 21, *(pytest.param(n, marks=pytest.mark.long) for n in range(34) if n not in {14, 21})]
)
def test_a_way_back_that_is_cut_short_and_fails_again_still_leads_to_the_day(die_after: int) -> None:
    rehearsal = a_day()
    day = rehearsal.awake()
    rehearsal.world.calls.faults.add(NO_NIGHT)
    rehearsal.switch("night", die_after=die_after)
    rehearsal.wait(60)
    ended = rehearsal.switch("night")
    assert (ended.finished, bool(ended.state.going_back)) == (True, True)
    assert (rehearsal.awake(), rehearsal.cordoned() & day, rehearsal.broken) == (day, set(), [])


@pytest.mark.parametrize(("report_s", "least_s", "most_s"), [(0.0, 0, 40), (300.0, 40, 70)])
def test_a_short_sleep_is_over_soon_although_its_kubelet_has_nothing_new_to_report(
    report_s: float, least_s: float, most_s: float
) -> None:
    """Nobody noticed it, so the status is as before, and a usual kubelet keeps that to itself for five minutes."""
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations(report_s=report_s))
    rehearsal.wait(400)
    day = rehearsal.awake()
    rehearsal.world.calls.faults.add(NO_NIGHT)
    began_s = rehearsal.world.clock.now_s
    ended = rehearsal.switch("night")
    assert (ended.finished, bool(ended.state.going_back), rehearsal.awake()) == (True, True, day)
    assert least_s <= rehearsal.world.clock.now_s - began_s < most_s
    assert rehearsal.broken == []
