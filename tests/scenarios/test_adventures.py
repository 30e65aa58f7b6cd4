"""Adventures from seeds, in virtual time: faults, late pictures, crashes and people; no law is ever broken.

Many more of them: make soak SEEDS=100000 FIRST=1
"""

from __future__ import annotations

import pytest

from tests.support.adventures import BEGAN, Adventure, adventure
from tests.support.rehearsal import at_work, files_of
from tests.support.soak import laws_broken, told
from vgpuctl.sim.faults import VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, story
from vgpuctl.sim.world import World

#: Seed 20 has found that a worker was stopped with its pods, once somebody had deleted its node; 1200, that one was
#: uncordoned whose suspend had hung and was taken that very moment.
A_CHUNK = 8
CHUNKS = [*range(1, 9), *(pytest.param(number, marks=pytest.mark.long) for number in range(9, 101))]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_no_law_is_broken_and_the_shift_comes_or_it_is_said_why_not(chunk: int) -> None:
    first = A_CHUNK * (chunk - 1) + 1
    bad = [told(*found) for seed in range(first, first + A_CHUNK) if (found := laws_broken(seed))[1]]
    assert not bad, "\n".join(bad)


def test_a_seed_tells_the_same_story_each_time() -> None:
    one, other = adventure(9), adventure(9)
    assert (one.sent, one.people.told) == (other.sent, other.people.told)


def test_on_the_way_back_a_suspend_without_an_answer_is_still_reckoned_with() -> None:
    """It may have been taken, and vCenter's stream shows it late."""
    inventory = at_work(story())
    lived = Adventure(World(inventory, Durations(suspend_s=4.0), began=BEGAN), files_of(inventory))
    lived.wait(60)
    lived.see_vcenter_late(3.0)
    for worker, effect in (
        ("worker-1", Effect(how=How.LOSE_REPLY)),
        ("worker-2", Effect(how=How.FAIL, what="NoDiskSpace")),
    ):
        rule = Rule(server=VCENTER, method="SuspendVM_Task", on=worker, effect=effect, times=1)
        lived.world.calls.faults.add(rule)
    assert lived.switch("night").memory.going_back
    assert (lived.broken, lived.judge.broken) == ([], [])
