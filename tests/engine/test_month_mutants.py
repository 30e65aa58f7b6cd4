"""That the months can fail: a daemon with one thing wrong breaks the rule that it should, within one month."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.months import mutants
from tests.support.months.month import month

DAYS = 2
CASES: list[tuple[Callable[[pytest.MonkeyPatch], None], str, int]] = [
    (mutants.a_start_that_is_never_too_late, "7: ", 1),
    (mutants.a_daemon_that_begins_nothing, "nothing is in its way", 1),
    (mutants.a_pause_that_pauses_nothing, "4: it is paused", 3),
    (mutants.a_run_that_never_asks_for_its_course, "4: it is paused", 3),
    (mutants.a_timetable_that_wins_over_overrides, "nothing is in its way", 4),
    (mutants.a_host_that_is_tried_again_at_once, "5: before its pause is over", 4),
]


@pytest.mark.long
@pytest.mark.parametrize(("mutant", "rule", "seed"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_each_mutant_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], rule: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any(rule in broken for broken in month(seed, DAYS).broken), "the sound product is not to blame"
    mutant(monkeypatch)
    assert any(rule in broken for broken in month(seed, DAYS).broken)
