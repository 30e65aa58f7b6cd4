"""The daemon on trial: it says at each start what it would do, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from vgpuctl.daemon.announcing import Announcer
from vgpuctl.daemon.news import News
from vgpuctl.daemon.reports import blocked_texts, refused_texts, verdict_texts
from vgpuctl.daemon.rounds import Round, ahead, look
from vgpuctl.daemon.troubles import Troubles
from vgpuctl.files import Files
from vgpuctl.model.errors import PassingError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry
from vgpuctl.model.notice import Notice
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable
from vgpuctl.operations import Preview, with_history
from vgpuctl.planning.due import next_moment


class Looking(Protocol):
    """What a daemon on trial takes of a connection: nothing that writes."""

    def observe(self, catalogue: Catalogue, *, scales: bool) -> None: ...
    def fleet(self) -> Fleet: ...
    def history(self) -> list[Entry]: ...


class _Silent:
    """History as it is, and no Events: they would be writes."""

    def __init__(self, connection: Looking) -> None:
        self.history = connection.history

    def announce(self, found: Sequence[Notice]) -> None: ...


class Trial:
    """Judges each round as the daemon does. In memory is only what it has said.

    `describe` puts a plan into one sentence.
    """

    def __init__(
        self,
        current_files: Callable[[], Files],
        connection: Looking,
        say: Callable[[str], None],
        describe: Callable[[Preview], str],
        now: Callable[[], datetime],
    ) -> None:
        self._current_files, self._connection, self._say = current_files, connection, say
        self._describe, self._now = describe, now
        self._news = News(say, now)
        self._troubles = Troubles(self._news, say, now)
        self._announcer = Announcer(_Silent(connection), say)
        #: The start of each timetable that was told, and the hosts on which it would have begun.
        self._begun: dict[str, tuple[datetime, frozenset[str]]] = {}

    def keep(self) -> None:
        """Say what a daemon would do now, as far as that is new."""
        files = self._current_files()
        for timetable in files.timetables.values():
            if not self._troubles.waiting(timetable.name):
                with self._troubles.reporting(timetable.name):
                    self._look(files, timetable)

    def next_moment(self) -> datetime | None:
        """Return when something falls due next; None if it is not known. The round of the next minute comes anyway."""
        with suppress(Exception):
            fleet, now = self._connection.fleet(), self._now()
            moments = (next_moment(table, fleet.orders, now) for table in self._current_files().timetables.values())
            return min((moment for moment in moments if moment), default=None)
        return None

    def _look(self, files: Files, timetable: Timetable) -> None:
        self._connection.observe(files.catalogue, scales=files.scales)
        fleet = self._connection.fleet()
        if unheard := fleet.unheard():
            raise PassingError(f"{unheard}.")
        self._announcer.look(fleet, files, timetable, self._now())
        found = look(fleet, files, timetable, self._now())
        if found is not None:
            self._tell(fleet, self._not_begun(found))

    def _not_begun(self, found: Round) -> Round:
        """Return the round without the hosts on which this start has begun, had this been no trial."""
        # The world stays as it was. So the timetable would soon call this start missed (skip_after, min_run).
        start, hosts = self._begun.get(found.timetable.name, (found.due.start, frozenset()))
        if start != found.due.start:
            return found
        return replace(found, verdicts={host: each for host, each in found.verdicts.items() if host not in hosts})

    def _tell(self, fleet: Fleet, found: Round) -> None:
        table = found.timetable.name
        self._news.tell(f"{table} verdicts", verdict_texts(fleet, found))
        for shift in found.shifts():
            name = f"{shift} on {table}"
            preview, blocked = ahead(fleet, found, shift, found.hosts(shift))
            self._news.tell(f"{name} blocked", blocked_texts(blocked))
            self._news.tell(f"{name} refused", refused_texts(name, preview.refusals))
            if preview.plan:
                whole = with_history(preview, self._connection.history())
                self._say(f"{name} would begin now. {self._describe(whole)}. Nothing is changed: this is a dry run.")
                self._remember(table, found, frozenset(fleet.host_of(step.subject) for step in preview.plan))
            elif not blocked and not preview.refusals and shift == found.due.shift:
                self._news.tell(f"{table} stands", [(f"{name} {found.due.start}", f"It is {name}. Nothing to do.")])

    def _remember(self, table: str, found: Round, hosts: frozenset[str]) -> None:
        start, before = self._begun.get(table, (found.due.start, frozenset()))
        self._begun[table] = found.due.start, hosts | (before if start == found.due.start else frozenset())
