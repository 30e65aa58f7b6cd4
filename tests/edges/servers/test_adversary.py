"""An adversary between us and both servers: no picture is old and not said to be, and nothing ends or hangs.

Many more seeds: make soak SEEDS=10000 FIRST=1
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.between.adversary import Trouble
from tests.support.between.pictures import encounter
from tests.support.soak import told

A_CHUNK = 30
CHUNKS = [*range(1, 6), *(pytest.param(number, marks=pytest.mark.long) for number in range(6, 51))]
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
