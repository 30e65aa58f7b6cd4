"""What the daemon's loop runs on. Tests and virtual time exchange it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from vgpuctl.operations import Operation


def in_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="switch", daemon=True).start()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """`leading`: whether this instance may act. `start` runs a switch beside the loop.

    `look_again` is called when a switch has ended.
    """

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    leading: Callable[[], bool] = lambda: True
    start: Callable[[Callable[[], None]], None] = in_thread
    look_again: Callable[[], None] = lambda: None
    make_operation: Callable[..., Operation] = Operation
