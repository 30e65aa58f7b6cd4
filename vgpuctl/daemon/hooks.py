"""What the daemon's loop runs on. Tests and virtual time exchange it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from vgpuctl.engine.ports import Report, World
from vgpuctl.operations import Operation


def in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="switch", daemon=True).start()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """`leading`: whether this instance may act. `start` runs a switch beside the loop.

    `look_again` is called when a switch has ended, and `ended` with its timetable and report. `counted` returns the
    world in which a switch's requests are counted.
    """

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    leading: Callable[[], bool] = lambda: True
    start: Callable[[Callable[[], None]], None] = in_thread
    look_again: Callable[[], None] = lambda: None
    ended: Callable[[str, Report], None] = lambda _timetable, _report: None
    counted: Callable[[World], World] = lambda world: world
    make_operation: Callable[..., Operation] = Operation
