"""What looks spare themselves, because nothing changed, changes no decision."""

from __future__ import annotations

import pytest

from tests.support import runs
from tests.support.adventures import adventure
from vgpuctl.engine.dispatcher import Moment
from vgpuctl.engine.reactor import Caches, Decision, Goal, decide
from vgpuctl.engine.run_state import RunState
from vgpuctl.model.fleet import Fleet

A_CHUNK = 6
CHUNKS = [1, 2, *(pytest.param(number, marks=pytest.mark.long) for number in range(3, 20))]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_each_look_decides_as_if_it_were_the_first(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def twice(goal: Goal, fleet: Fleet, state: RunState, moment: Moment, caches: Caches) -> Decision:
        nonlocal looks
        looks += 1
        spared = decide(goal, fleet, state, moment, caches)
        assert spared == decide(goal, fleet, state, moment)
        return spared

    monkeypatch.setattr(runs, "decide", twice)
    for seed in range(A_CHUNK * (chunk - 1) + 1, A_CHUNK * chunk + 1):
        adventure(seed)
    assert looks > 100
