"""Wakes the loop: when something falls due, when a file changes, and at least every minute. It knows no fleet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any

from vgpuctl.model.errors import with_place

LOOK_EVERY_S = 60
FILES_EVERY_S = 2
JOB = "next-moment"


class Alarm:
    """The loop that waits for the alarm works in one thread, one round at a time. No fault ends it.

    APScheduler sets the alarm off at the next moment that matters. If it fails, the round of the next minute makes up
    for it.
    """

    def __init__(
        self,
        next_moment: Callable[[], datetime | None],
        files_changed: Callable[[], bool],
        say: Callable[[str], None],
        rings: SimpleQueue[None],
    ) -> None:
        self._next_moment, self._files_changed, self._say, self._rings = next_moment, files_changed, say, rings
        self._ended = False
        self._scheduler: Any = None

    def end(self) -> None:
        self._ended = True
        self._ring()

    def _ring(self) -> None:
        # Python: a signal's handler may interrupt this very loop in its wait. Then `put` is safe, and Event.set, which
        # takes a lock, is not.
        self._rings.put(None)

    def run(self, work: Callable[[], None]) -> None:
        """Work now, and at every alarm, until the end."""
        try:
            while not self._ended:
                self._guarded("The round", work)
                self._guarded("The alarm for the next moment", self._ring_at_next_moment)
                if not self._guarded("The look at the files", self._wait):
                    self._rings_within(LOOK_EVERY_S)
        finally:
            if self._scheduler is not None:
                self._guarded("The end of the alarm", lambda: self._scheduler.shutdown(wait=False))

    def _guarded(self, what: str, call: Callable[[], None]) -> bool:
        """True if the call succeeded. A fault is logged with its place, and the next round comes."""
        try:
            call()
        except Exception as error:
            self._say(f"{what} failed through a bug in vgpuctl: {with_place(error)}")
            return False
        return True

    def _wait(self) -> None:
        """Wait for an alarm, for a change of the files, or for the next minute."""
        for _ in range(LOOK_EVERY_S // FILES_EVERY_S):
            if self._rings_within(FILES_EVERY_S) or self._files_changed():
                return

    def _rings_within(self, seconds: float) -> bool:
        """Wait for the alarm. Several rings at once are one."""
        try:
            self._rings.get(timeout=seconds)
            while not self._rings.empty():
                self._rings.get()
        except Empty:
            return False
        return True

    def _ring_at_next_moment(self) -> None:
        moment = self._next_moment()
        if moment is None:
            return
        if self._scheduler is None:
            self._scheduler = _started_scheduler()
        # APScheduler: by default, an alarm that is more than a second late is dropped.
        self._scheduler.add_job(
            self._ring, "date", run_date=moment, id=JOB, replace_existing=True, misfire_grace_time=None
        )


def _started_scheduler() -> Any:
    # APScheduler 3.11 only wakes the loop up, and holds no truth. For it, `0 8 * * 1-5` is Tuesday to Saturday.
    # In autumn, its 02:30 comes twice. It never resumes a job that was killed.
    from apscheduler.schedulers.background import BackgroundScheduler  # noqa: PLC0415

    scheduler = BackgroundScheduler(timezone="UTC")
    scheduler.start()
    return scheduler
