"""The daemon plays months from seeds, in virtual time: who wins is judged at each write, and the shift comes.

A virtual day has four hours and two starts. Many more of them: make soak SEEDS=1000 FIRST=1
"""

from __future__ import annotations

import pytest

from tests.support.months.month import month
from tests.support.months.tally import Tally
from tests.support.soak import told

DAYS = 2
A_CHUNK = 6


def test_on_quiet_days_each_shift_comes_at_its_start() -> None:
    lived = month(2, 1, quiet=True)
    assert lived.broken == []
    assert lived.referee.counts["host minutes judged"] > 200
    assert lived.referee.counts["beginnings"] >= 2


def test_no_order_is_broken_and_the_shift_comes_a_minute_after_all_trouble() -> None:
    tally = played(3, 1)
    assert not tally.bad, said(tally)
    assert not tally.missing(share=0.5), str(tally)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(1, 13))
def test_no_order_is_broken_in_more_months(chunk: int) -> None:
    tally = played(1 + A_CHUNK * chunk, A_CHUNK)
    assert not tally.bad, said(tally)
    assert not tally.missing(share=0.5), str(tally)


@pytest.mark.long
def test_a_seed_tells_the_same_month_each_time() -> None:
    one, other = month(3, 1), month(3, 1)
    assert one.told == other.told
    assert one.sent == other.sent


def played(first: int, seeds: int) -> Tally:
    tally = Tally()
    for seed in range(first, first + seeds):
        tally.play(seed, DAYS)
    return tally


def said(tally: Tally) -> str:
    return "\n".join(told(seed, broken) for seed, broken in tally.bad.items())
