"""That the adventures can fail: a product with one thing wrong breaks the law that it should, within a few seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support import mutants
from tests.support.soak import laws_broken

#: From the seed where each is known to be caught; where the product has changed since, it may take some more.
WITHIN = 120


@pytest.mark.parametrize(
    ("mutant", "law", "first"),
    [
        (mutants.a_planner_that_acquires_before_it_releases, "law 5: night is not on", 1),
        (mutants.an_engine_that_ignores_the_uid, "was evicted, and is not the pod that was seen", 62),
        (mutants.a_resume_without_the_lease_check, "is uncordoned and is not truly back", 2),
        (mutants.a_cordon_that_does_not_record, "is cordoned, and nothing says by whom", 1),
        (mutants.a_cordon_that_is_always_ours, "was somebody else's", 43),
        (mutants.a_suspend_without_the_last_list, "is stopped while it runs", 6),
        (mutants.a_way_back_that_forgets_a_suspend, "is uncordoned and goes down", 196),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_each_mutant_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], law: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert any(law in broken for seed in range(first, first + WITHIN) for broken in laws_broken(seed)[1])
