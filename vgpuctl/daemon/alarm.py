"""Wakes the loop: at each start of a shift, and at least every minute. It keeps no state about the fleet."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

LOOK_EVERY_S = 60
JOB = "next-start"


class Alarm:
    """APScheduler sets the alarm off; the loop that waits for it works in one thread, one round at a time."""

    def __init__(self, next_start: Callable[[], datetime | None]) -> None:
        self._next_start = next_start
        self._woken = threading.Event()
        self._ended = threading.Event()

    def end(self) -> None:
        self._ended.set()
        self._woken.set()

    def run(self, work: Callable[[], None]) -> None:
        """Work now, and at every alarm, until the end."""
        # APScheduler 3.11 only wakes the loop up, and holds no truth. For it, `0 8 * * 1-5` is Tuesday to Saturday.
        # In autumn, its 02:30 comes twice. It never resumes a job that was killed.
        from apscheduler.schedulers.background import BackgroundScheduler  # noqa: PLC0415

        scheduler = BackgroundScheduler(timezone="UTC")
        scheduler.add_job(self._woken.set, "interval", seconds=LOOK_EVERY_S)
        scheduler.start()
        try:
            while not self._ended.is_set():
                work()
                self._ring_at_next_start(scheduler)
                self._woken.wait()
                self._woken.clear()
        finally:
            scheduler.shutdown(wait=False)

    def _ring_at_next_start(self, scheduler: object) -> None:
        start = self._next_start()
        if start is not None:
            # APScheduler: by default, an alarm that is more than a second late is dropped.
            scheduler.add_job(  # type: ignore[attr-defined]
                self._woken.set, "date", run_date=start, id=JOB, replace_existing=True, misfire_grace_time=None
            )
