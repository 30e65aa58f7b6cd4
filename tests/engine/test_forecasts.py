"""Forecasts over nights from seeds: how far they are from what then happens, and whether each refusal was foretold.

A thousand of them: python -m tests.support.foretold
"""

from __future__ import annotations

import pytest

from tests.support.foretold import MEDIAN, P90, Account, lived
from tests.support.nights import SIZES

#: Estates of one card are quick.
SOME = [(seed, SIZES[:1]) for seed in (1, 2)]
MANY = [(seed, SIZES) for seed in range(4, 10)]


@pytest.mark.parametrize(
    ("estates", "nights"),
    [pytest.param(SOME, 8, id="some"), pytest.param(MANY, 12, marks=pytest.mark.long, id="many")],
)
def test_nights_take_as_long_as_forecast_and_no_refusal_comes_without_a_word(
    estates: list[tuple[int, tuple[tuple[int, int], ...]]], nights: int
) -> None:
    account = Account.of([night for seed, sizes in estates for night in lived(seed, nights, sizes)])
    print(account)
    assert not account.wrong
    assert account.error(0.5) <= MEDIAN
    assert account.error(0.9) <= P90
