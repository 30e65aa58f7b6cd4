"""The daemon with one thing wrong. Each mutant says what; the months must catch it."""

from __future__ import annotations

import pytest

from vgpuctl.daemon.schedule_loop import ScheduleLoop
from vgpuctl.engine.runner import Runner
from vgpuctl.model.orders import Orders
from vgpuctl.planning import due, verdicts

Patch = pytest.MonkeyPatch


def a_pause_that_pauses_nothing(patch: Patch) -> None:
    patch.setattr(Orders, "paused", lambda _orders, _now: None)


def a_timetable_that_wins_over_overrides(patch: Patch) -> None:
    patch.setattr(due, "_override", lambda _table, _orders: None)


def a_start_that_is_never_too_late(patch: Patch) -> None:
    patch.setattr(verdicts._Judge, "_before_the_start", lambda *_: None)


def a_host_that_is_tried_again_at_once(patch: Patch) -> None:
    patch.setattr(verdicts._Judge, "_failed", lambda *_: None)


def a_run_that_never_asks_for_its_course(patch: Patch) -> None:
    patch.setattr(Runner, "_steer", lambda *_: None)


def a_daemon_that_begins_nothing(patch: Patch) -> None:
    patch.setattr(ScheduleLoop, "_begin", lambda *_: False)
