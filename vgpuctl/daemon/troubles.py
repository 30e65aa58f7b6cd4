"""Errors of the daemon's rounds: each is reported once, and ends only its own round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from vgpuctl.basics.durations import format_duration
from vgpuctl.daemon.news import News
from vgpuctl.model.errors import BusyError, PassingError, StoppedError, VgpuctlError, with_place

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(minutes=30)
#: The pause after a switch that could not begin, because a person is at work or an order came just then.
SHORT_PAUSE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class BackOff:
    """The pause after an error that no host caused, such as a missing right. Each one doubles it.

    A start of the timetable ends it.
    """

    until: datetime
    pause: timedelta


class Troubles:
    """Reports errors by timetable, and remembers which timetable has to wait after one."""

    def __init__(self, news: News, say: Callable[[str], None], now: Callable[[], datetime]) -> None:
        self._news, self._say, self._now = news, say, now
        self._back_off: dict[str, BackOff] = {}
        self._rests: dict[str, datetime] = {}

    def waiting(self, timetable: str) -> bool:
        back_off, now = self._back_off.get(timetable), self._now()
        return (back_off is not None and now < back_off.until) or now < self._rests.get(timetable, now)

    def next_tries(self) -> list[datetime]:
        """Return when timetables that wait are tried again."""
        return [*(back_off.until for back_off in self._back_off.values()), *self._rests.values()]

    def forget(self, timetable: str | None = None) -> None:
        """Forget the errors of a timetable; None: of all."""
        if timetable is None:
            self._back_off.clear()
            self._rests.clear()
        else:
            self._back_off.pop(timetable, None)
            self._rests.pop(timetable, None)

    @contextmanager
    def reporting(self, timetable: str, next_start: datetime | None = None) -> Iterator[None]:
        """Report any error, and let the next round come. An error that does not pass by itself is waited out."""
        with self._telling(timetable, f"{timetable} error", next_start):
            yield

    @contextmanager
    def reporting_switch(self, timetable: str, next_start: datetime | None) -> Iterator[None]:
        """Do the same for a switch in a thread. It is tried again soon, since its end is no other reason to look."""
        # A topic of its own: the rounds go on meanwhile, and a round without an error ends its own topic.
        with self._telling(timetable, f"{timetable} switch", next_start, rest=SHORT_PAUSE):
            yield

    @contextmanager
    def _telling(
        self, timetable: str, topic: str, next_start: datetime | None, rest: timedelta | None = None
    ) -> Iterator[None]:
        try:
            yield
        except (BusyError, StoppedError, PassingError) as error:
            if rest is not None:
                self._rests[timetable] = self._now() + rest
            self._news.tell(topic, [(error.message, f"{timetable}: {error.message}")])
        except VgpuctlError as error:
            self._wait(timetable, f"{error.message}{f' {error.hint}' if error.hint else ''}", next_start)
        except Exception as error:
            self._wait(timetable, f"a fault of vgpuctl's own: {with_place(error)}.", next_start)
        else:
            self._news.tell(topic, [])

    def _wait(self, timetable: str, why: str, next_start: datetime | None) -> None:
        before = self._back_off.get(timetable)
        pause = min(before.pause * 2, LONGEST_PAUSE) if before else FIRST_PAUSE
        until = self._now() + pause
        self._back_off[timetable] = BackOff(min(until, next_start) if next_start else until, pause)
        self._say(f"{timetable}: {why} Next try in {format_duration(pause.total_seconds())}.")
