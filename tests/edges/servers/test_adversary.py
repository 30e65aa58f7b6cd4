"""An adversary between us and both servers: no picture is old and not said to be, and nothing ends or hangs.

Many more seeds: make soak SEEDS=10000 FIRST=1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.support import mutants
from tests.support.between.adversary import Trouble
from tests.support.between.estate import Seen
from tests.support.between.pictures import encounter
from tests.support.between.switches import switched
from tests.support.soak import told

A_CHUNK, SWITCHES_A_CHUNK = 30, 8
CHUNKS = [*range(1, 5), *(pytest.param(number, marks=pytest.mark.long) for number in range(5, 51))]
SWITCHES = [*range(1, 3), *(pytest.param(number, marks=pytest.mark.long) for number in range(3, 41))]
#: Where the product has changed since, a mutant may take some seeds more.
WITHIN = 40
#: What a chunk of adversaries does at least, by kind. Measured over 14 chunks: the least was about twice as much.
FLOOR = {
    Trouble.CUT: 40,
    Trouble.TRUNCATED: 14,
    Trouble.DELAYED: 15,
    Trouble.REPEATED: 10,
    Trouble.SWAPPED: 15,
    Trouble.GARBLED: 12,
    Trouble.ALTERED: 3,
    Trouble.SKIPPED: 2,
    Trouble.STALE: 3,
    Trouble.UNOBSERVED: 30,
}


@pytest.mark.parametrize("chunk", CHUNKS)
def test_what_is_shown_is_true_or_said_to_be_old(chunk: int) -> None:
    first = A_CHUNK * (chunk - 1)
    seen = [encounter(seed) for seed in range(first, first + A_CHUNK)]
    bad = [told(each.seed, each.wrong) for each in seen if each.wrong]
    assert not bad, "\n".join(bad)
    done = sum((each.counts for each in seen), Counter[Trouble]())
    assert {kind: done[kind] for kind in Trouble if done[kind] < FLOOR[kind]} == {}


@pytest.mark.parametrize("chunk", SWITCHES)
def test_a_switch_ends_lawfully_and_the_same_command_goes_on(chunk: int) -> None:
    first = SWITCHES_A_CHUNK * (chunk - 1)
    seen = [switched(seed) for seed in range(first, first + SWITCHES_A_CHUNK)]
    bad = [told(each.seed, each.wrong) for each in seen if each.wrong]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    ("mutant", "wrong", "meet", "seeds"),
    [
        (mutants.a_stream_that_catches_only_our_errors, "ended with ZeroDivisionError", encounter, range(WITHIN)),
        (mutants.a_stream_that_a_listener_may_end, "ended with ZeroDivisionError", encounter, range(WITHIN)),
        (mutants.a_lease_that_is_taken_on_interrupt, "law 7: ", switched, range(3, 4 * WITHIN, 4)),
    ],
    ids=lambda value: value.__name__ if value in mutants.MUTANTS else "",
)
def test_each_mutant_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None],
    wrong: str,
    meet: Callable[[int], Seen],
    seeds: range,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    assert any(wrong in each for seed in seeds for each in meet(seed).wrong)
