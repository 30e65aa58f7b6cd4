"""That the adventures can fail: a product with one thing wrong breaks the law that it should, within a few seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.support import moments, mutants
from tests.support.soak import laws_broken

Story = Callable[[], Iterable[str]]

#: Where the product has changed since, it may take some seeds more than the one that is known to catch it.
WITHIN = 120


def from_seed(first: int) -> Story:
    return lambda: (law for seed in range(first, first + WITHIN) for law in laws_broken(seed)[1])


@pytest.mark.parametrize(
    ("mutant", "law", "story"),
    [
        (mutants.a_planner_that_acquires_before_it_releases, "law 5: night is not on", from_seed(14)),
        (mutants.an_engine_that_ignores_the_uid, "was evicted, and is not the pod that was seen", from_seed(95)),
        (mutants.a_resume_without_the_lease_check, "is uncordoned and is not truly back", from_seed(1)),
        (mutants.a_cordon_that_does_not_record, "is cordoned, and nothing says by whom", from_seed(1)),
        (mutants.a_cordon_that_is_always_ours, "was somebody else's", from_seed(12)),
        (mutants.a_drain_that_spares_nobody, "was to sleep along, and is evicted", from_seed(3)),
        (mutants.a_drain_that_asks_again_and_again, "is evicted twice", from_seed(1)),
        (mutants.a_switch_without_turns, "conduct: ", from_seed(4)),
        (mutants.a_stop_that_waits_for_no_volume, "is stopped and keeps", from_seed(5)),
        (mutants.a_suspend_that_cuts_the_power, "was to be suspended, and goes off", from_seed(4)),
        (mutants.an_attach_that_leaves_the_old_vgpu, "law 5: day is not on", from_seed(1)),
        (
            mutants.a_suspend_without_the_last_list,
            "is stopped while it runs",
            moments.a_pod_comes_when_its_worker_is_about_to_stop,
        ),
        (
            mutants.a_way_back_that_forgets_a_suspend,
            "is uncordoned and goes down",
            moments.a_suspend_has_no_answer_and_its_host_goes_back,
        ),
    ],
    ids=lambda value: value.__name__ if value in mutants.MUTANTS else "",
)
def test_each_mutant_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], law: str, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert any(law in broken for broken in story())
