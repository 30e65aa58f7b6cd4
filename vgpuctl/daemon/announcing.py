"""Tells ahead of each start whether the shift will come, and in time: in the log, and as Events on the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from vgpuctl.daemon.rounds import Round, ahead
from vgpuctl.files import Files
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry
from vgpuctl.model.notice import Notice
from vgpuctl.model.timetable import Timetable
from vgpuctl.operations import with_history
from vgpuctl.planning.due import NO_TIME, Due, coming
from vgpuctl.reporting.notices import outlook_notices
from vgpuctl.reporting.outlook import Coming, Outlook, news, outlook


class Informed(Protocol):
    """What an announcement takes beside the fleet."""

    def history(self) -> list[Entry]: ...
    def announce(self, found: Sequence[Notice]) -> None: ...


class Announcer:
    """Plans each coming switch for real, from `announce` before its start. It remembers only what it has told."""

    def __init__(self, informed: Informed, say: Callable[[str], None]) -> None:
        self._informed, self._say = informed, say
        self._last: dict[str, Outlook] = {}
        self._history: dict[str, tuple[datetime, list[Entry]]] = {}

    def takes(self, timetable: str) -> timedelta:
        """Return how long the coming switch takes, as it was last forecast; nothing if that is not known."""
        last = self._last.get(timetable)
        return timedelta(seconds=last.length_s) if last else NO_TIME

    def look(self, fleet: Fleet, files: Files, timetable: Timetable, now: datetime) -> None:
        """Tell what is new about the coming start of this timetable."""
        then = coming(timetable, fleet.orders, now)
        if then is None or now < then.start - timetable.announce:
            self._last.pop(timetable.name, None)
            return
        expected = self._outlook(fleet, files, timetable, then, now)
        before = self._last.get(timetable.name)
        self._last[timetable.name] = expected
        found = news(before, expected)
        for each in found:
            self._say(each.message)
        self._informed.announce(outlook_notices(found, fleet))

    def _outlook(self, fleet: Fleet, files: Files, timetable: Timetable, then: Due, now: datetime) -> Outlook:
        found = Round(files=files, timetable=timetable, now=now, due=then, verdicts={}, hands={})
        hosts = {worker.host for worker in timetable.workers(fleet)}
        # What people hold will not move then either, as far as it is known now.
        planned, _ = ahead(fleet, found, then.shift, hosts)
        preview = with_history(planned, self._earlier(timetable.name, then.start))
        # In this machine's zone, as the log's own times.
        start, end = then.start.astimezone(), then.ends.astimezone() if then.ends else None
        return outlook(preview, Coming(timetable=timetable.name, shift=then.shift, start=start, end=end))

    def _earlier(self, timetable: str, start: datetime) -> Iterable[Entry]:
        """Return earlier switches. They are read once for each start, not once a minute."""
        known = self._history.get(timetable)
        if known is None or known[0] != start:
            known = start, self._informed.history()
            self._history[timetable] = known
        return known[1]
