"""The daemon's alarm: a round comes at each start, after a change of the files and each minute, whatever fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from apscheduler.schedulers import background

from vgpuctl.daemon.alarm import FILES_EVERY_S, LOOK_EVERY_S, Alarm


class Ticks(SimpleQueue[None]):
    """A queue at which nothing waits: it counts the seconds that would pass."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def get(self, block: bool = True, timeout: float | None = None) -> None:
        if self.empty():
            assert timeout is not None
            self.now_s += timeout
            raise Empty
        super().get()


@dataclass
class Rounds:
    """An alarm that ends after some rounds, and when these came."""

    most: int = 4
    next_start: Callable[[], datetime | None] = lambda: None
    changed: Callable[[float], bool] = lambda _: False
    work: Callable[[], None] = lambda: None
    ticks: Ticks = field(default_factory=Ticks)
    at_s: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def run(self) -> list[float]:
        alarm = Alarm(self.next_start, lambda: self.changed(self.ticks.now_s), self.said.append, self.ticks)

        def work() -> None:
            self.at_s.append(self.ticks.now_s)
            if len(self.at_s) == self.most:
                alarm.end()
            self.work()

        alarm.run(work)
        return self.at_s


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("can't start new thread")


EACH_MINUTE = [0, LOOK_EVERY_S, 2 * LOOK_EVERY_S, 3 * LOOK_EVERY_S]


def test_without_any_cause_a_round_comes_each_minute() -> None:
    assert Rounds().run() == EACH_MINUTE


def test_a_change_of_the_files_brings_a_round_within_seconds() -> None:
    assert Rounds(changed=lambda now_s: now_s == 10).run() == [0, 10, 70, 130]
    assert FILES_EVERY_S <= 2


def test_no_fault_in_a_round_ends_the_rounds() -> None:
    rounds = Rounds(work=fail)
    assert rounds.run() == EACH_MINUTE
    assert len(rounds.said) == 4
    assert "can't start new thread (test_alarm.py:" in rounds.said[0]


def test_no_fault_in_a_look_at_the_files_ends_the_rounds_or_fills_the_log() -> None:
    rounds = Rounds(changed=fail)
    assert [at_s // LOOK_EVERY_S for at_s in rounds.run()] == [0, 1, 2, 3]
    assert len(rounds.said) == 3
    assert "The look at the files failed" in rounds.said[0]


def test_no_fault_in_the_next_start_ends_the_rounds() -> None:
    rounds = Rounds(next_start=fail)
    assert rounds.run() == EACH_MINUTE
    assert "The alarm for the next moment failed through a bug in vgpuctl: RuntimeError" in rounds.said[0]


@pytest.mark.parametrize("call", ["__init__", "start", "add_job", "shutdown"])
def test_no_failure_of_the_scheduler_ends_the_rounds(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background.BackgroundScheduler, call, fail)
    rounds = Rounds(next_start=lambda: datetime.now(UTC) + timedelta(hours=1))
    assert rounds.run() == EACH_MINUTE
    assert "can't start new thread (test_alarm.py:" in rounds.said[0]


def test_a_scheduler_that_could_not_start_is_started_at_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    start, starts = background.BackgroundScheduler.start, []

    def second_time(self: Any) -> None:
        starts.append(self)
        fail() if len(starts) == 1 else start(self)

    monkeypatch.setattr(background.BackgroundScheduler, "start", second_time)
    rounds = Rounds(next_start=lambda: datetime.now(UTC) + timedelta(hours=1))
    rounds.run()
    assert (len(starts), len(rounds.said)) == (2, 1)


def test_the_scheduler_rings_at_the_next_start() -> None:
    """The one test with the clock: the first round comes at once, the second at the start."""
    came: list[datetime] = []
    start = datetime.now(UTC) + timedelta(seconds=0.3)
    alarm = Alarm(lambda: start, lambda: False, lambda _: None, SimpleQueue())

    def work() -> None:
        came.append(datetime.now(UTC))
        if len(came) == 2:
            alarm.end()

    alarm.run(work)
    assert start <= came[1] < start + timedelta(seconds=FILES_EVERY_S)


def test_several_rings_at_once_bring_one_round() -> None:
    rounds = Rounds(most=3)
    rounds.ticks.put(None)
    rounds.ticks.put(None)
    assert rounds.run() == [0, 0, LOOK_EVERY_S]
