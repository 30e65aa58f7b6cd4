"""The daemon ended with SIGKILL at random instants of its switch: the next one finishes it, and does nothing twice.

Processes: only SIGKILL ends one between any two instructions. After each write: test_kill_points.py; after each step in
virtual time: tests/engine/test_cut_short.py.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemons import Daemons, daemons, wait_until

NIGHT = {"worker-5"}
#: Longer than an undisturbed switch of this estate, from its first write.
SPAN_S = 0.7
PACES = {"pod_end_s": 0.1, "suspend_s": 0.1, "power_on_s": 0.1, "guest_boot_s": 0.1}
#: `make test-long` has 200 instants.
SAMPLE, CHUNK = 4, 20


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemons]:
    with daemons(tmp_path, monkeypatch, lease_s=1, **PACES) as found:
        found.wants("night", other="day")
        yield found


def killed_at(world: Daemons, instant_s: float) -> bool:
    """Return whether the switch was still under way."""
    world.begin_again()
    first = world.start()
    wait_until(lambda: bool(world.log.writes), first.said)
    time.sleep(instant_s)
    first.process.kill()
    first.process.wait(10)
    under_way = "It is night" not in first.said()
    second = world.start()
    world.comes(NIGHT)
    wait_until(lambda: not world.departures(), second.said)
    second.says("This daemon leads.")
    assert second.ends() < 5
    assert second.process.returncode == 0, second.said()
    log = world.log
    moved = Counter(each.what for each in log.writes if each.what.endswith("_Task"))
    assert moved == {"SuspendVM_Task": 4, "PowerOnVM_Task": 1}, "no VM is moved twice"
    evicted = Counter(each.what for each in log.writes if each.what.endswith("/eviction"))
    assert set(evicted.values()) == {1}, "no pod is evicted twice"
    assert log.unfenced() == []
    return under_way


def killed(world: Daemons, seed: int, number: int) -> None:
    chance = random.Random(f"instants {seed}")
    instants = [chance.uniform(0, SPAN_S) for _ in range(number)]
    under_way = 0
    for instant_s in instants:
        under_way += killed_at(world, instant_s)
    print(f"{under_way} of {number} instants were in the middle of the switch")
    assert under_way >= number / 2


def test_a_sample_of_instants(world: Daemons) -> None:
    killed(world, 0, SAMPLE)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 11))
def test_two_hundred_instants(world: Daemons, seed: int) -> None:
    killed(world, seed, CHUNK)
