"""Adventures from seeds, in virtual time: faults, late pictures, crashes and people; no law is ever broken.

Many more of them: make soak SEEDS=100000 FIRST=1
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support import moments
from tests.support.adventures import adventure
from tests.support.soak import laws_broken, told

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


@pytest.mark.parametrize(
    "moment",
    [
        moments.a_pod_comes_when_its_worker_is_about_to_stop,
        moments.a_suspend_has_no_answer_and_its_host_goes_back,
        moments.somebody_shuts_a_guest_down_while_its_uncordon_hangs,
    ],
    ids=lambda moment: moment.__name__,
)
def test_at_no_moment_a_law_is_broken(moment: Callable[[], list[str]]) -> None:
    assert moment() == []
