"""The daemon's loop: what is due, what may happen on each host, and the switches that do it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from vgpuctl.daemon.announcing import Announcer
from vgpuctl.daemon.hooks import Hooks
from vgpuctl.daemon.news import News
from vgpuctl.daemon.reports import blocked_texts, refused_texts, said_at_beginning, said_at_end, verdict_texts
from vgpuctl.daemon.rounds import Round, ahead, look, wish_for
from vgpuctl.daemon.running import Running, held_workers
from vgpuctl.daemon.shared_lease import SharedLease
from vgpuctl.daemon.troubles import Troubles
from vgpuctl.engine.listening import MutedOnFailure
from vgpuctl.engine.ports import Lease, LedgerStore, World
from vgpuctl.engine.runner import Listener
from vgpuctl.files import Files
from vgpuctl.model.errors import PassingError, StoppedError, with_place
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry
from vgpuctl.model.notice import Notice
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable
from vgpuctl.model.wish import Wish
from vgpuctl.operations import Operation
from vgpuctl.planning.due import next_moment
from vgpuctl.planning.holds import holds_end
from vgpuctl.planning.outcomes import arrivals, leftovers
from vgpuctl.planning.wishes import former_wish

#: How long the end waits for the requests in flight.
ENDS_WITHIN_S = 20.0


class Connection(Protocol):
    def observe(self, catalogue: Catalogue, *, scales: bool) -> None: ...
    def fleet(self) -> Fleet: ...
    def world(self) -> World: ...
    def acting_lease(self, *, gives_way: bool) -> Lease: ...
    def history(self) -> list[Entry]: ...
    def announce(self, found: Sequence[Notice]) -> None: ...
    @property
    def ledger(self) -> LedgerStore: ...


class ScheduleLoop:
    """Level-triggered: at each round it compares the world with what is due.

    What must survive is in the ledger (decision 0024). In memory are the switches that run, and what has been said.
    `current_files` returns the same object until the files change. They change only between switches. `make_listener`
    makes a listener for each switch, so that each reports its own steps.
    """

    def __init__(
        self,
        current_files: Callable[[], Files],
        connection: Connection,
        make_listener: Callable[[], Listener],
        hooks: Hooks,
    ) -> None:
        self._current_files, self._connection, self._hooks = current_files, connection, hooks
        self._make_listener, self._files, self.now = make_listener, current_files(), hooks.now
        self._lease = SharedLease(lambda: connection.acting_lease(gives_way=True), hooks.leading)
        self._news = News(self._say, hooks.now)
        self._announcer = Announcer(connection, self._say)
        self._troubles = Troubles(self._news, self._say, hooks.now)
        self._running: dict[str, tuple[frozenset[str], Operation]] = {}
        self._idle = threading.Event()
        self._idle.set()
        self._ending = False

    @property
    def files(self) -> Files:
        """The files in force."""
        return self._files

    def interrupt(self) -> None:
        """End at the next safe point. It may be called from a signal handler."""
        self._ending = True
        for _, operation in tuple(self._running.values()):
            operation.interrupt(leave_tasks=True)

    def wait_until_idle(self) -> bool:
        """Wait for the switches that run to end. False if one still has requests in flight after some time."""
        return self._idle.wait(ENDS_WITHIN_S)

    def next_moment(self) -> datetime | None:
        """Return when to look again at the latest; None if it cannot be computed. The next round comes anyway."""
        try:
            fleet, now = self._connection.fleet(), self.now()
            moments = [
                next_moment(table, fleet.orders, now, self._announcer.takes(table.name))
                for table in self._files.timetables.values()
            ]
            moments += [outcome.again for outcome in fleet.outcomes.values()]
            moments += [holds_end(fleet), *self._troubles.next_tries()]
            return min((moment for moment in moments if moment and moment > now), default=None)
        except Exception as error:
            self._say(f"The start of the next shift is not known: {with_place(error)}")
            return None

    def keep(self) -> None:
        """Carry out what is due in each timetable, and in each that appears meanwhile."""
        if not self._hooks.leading():
            return
        files: Files | None = None
        while files is not self._files_now() and not self._ending:
            files = self._files
            for name in tuple(files.timetables):
                self._keep_timetable(name)

    def why_stop(self) -> str:
        """Return why no switch may go on; "" if it may."""
        if self._ending:
            return "The daemon ends: the requests in flight are finished."
        if not self._hooks.leading():
            return "This instance does not lead any more: it stops."
        asked = self._lease.asked()
        return f"{asked} asks to be let pass: the daemon stops at this point." if asked else ""

    def takes(self, timetable: str) -> timedelta:
        """Return how long the coming switch of a timetable takes, for a shift that begins early by its own history."""
        return self._announcer.takes(timetable)

    def taken(self, timetable: str) -> frozenset[str]:
        """Return the hosts on which switches of other timetables run: two at once could take one card."""
        running = tuple(self._running.items())
        return frozenset(host for name, (hosts, _) in running if name != timetable for host in hosts)

    def _files_now(self) -> Files:
        """Return the files in force. With new ones, earlier errors say nothing any more."""
        # A switch ends with the files with which it began, and all switches share one picture of the fleet.
        if self._running:
            return self._files
        files = self._current_files()
        if files is not self._files:
            self._files = files
            self._troubles.forget()
        return files

    def _keep_timetable(self, name: str) -> None:
        timetable = self._files_now().timetables.get(name)
        if timetable and not self._ending and name not in self._running and not self._troubles.waiting(name):
            with self._troubles.reporting(name, self._next_start(timetable)):
                self._keep(timetable)

    def _next_start(self, timetable: Timetable) -> datetime | None:
        with suppress(Exception):
            coming = timetable.next_start(self.now())
            return coming[1] if coming else None
        return None

    def _keep(self, timetable: Timetable) -> None:
        files = self._files
        if not self._running:
            self._connection.observe(files.catalogue, scales=files.scales)
        fleet = self._connection.fleet()
        # Decision 0018: nothing is decided on an old picture.
        if unheard := fleet.unheard():
            raise PassingError(f"{unheard}.")
        self._announcer.look(fleet, files, timetable, self.now())
        found = look(fleet, files, timetable, self.now(), self.takes(timetable.name))
        if found is None:
            return
        self._news.tell(f"{timetable.name} verdicts", verdict_texts(fleet, found))
        for shift in found.shifts():
            if self._begin(fleet, found, shift, found.hosts(shift) - self.taken(timetable.name)):
                return
        hosts = found.hosts(found.due.shift)
        if noted := {**arrivals(fleet, timetable, found.due, hosts), **leftovers(fleet, timetable, hosts)}:
            self._connection.ledger.write(noted)

    def _begin(self, fleet: Fleet, found: Round, shift: str, hosts: frozenset[str]) -> bool:
        """Begin a switch of these hosts. False if there is nothing to do."""
        timetable, name = found.timetable, f"{shift} on {found.timetable.name}"
        preview, blocked = ahead(fleet, found, shift, hosts)
        self._news.tell(f"{name} blocked", blocked_texts(blocked))
        self._news.tell(f"{name} refused", refused_texts(name, preview.refusals))
        if not preview.plan:
            return False
        begun = frozenset(fleet.host_of(step.subject) for step in preview.plan)
        running = Running(found, shift, self, held_workers(fleet, fleet.workers, found.now))
        operation = self._hooks.make_operation(
            world=self._hooks.counted(replace(self._connection.world(), lease=self._lease.share())),
            listener=self._make_listener(),
            timetable=timetable.name,
            course=running.course,
            outcomes=running.outcomes,
        )
        self._running[timetable.name] = begun, operation
        self._idle.clear()
        if self._ending:
            operation.interrupt(leave_tasks=True)
        self._hooks.start(
            lambda: self._run(name, found, operation, lambda newer: self._wish(newer, found, shift, hosts))
        )
        return True

    def _wish(self, fleet: Fleet, before: Round, shift: str, hosts: frozenset[str]) -> Wish:
        """Return the wish again: under the Lease both servers were asked, and a person may have ordered something."""
        found = look(fleet, before.files, before.timetable, self.now(), self.takes(before.timetable.name))
        if found is None or (found.due.shift, found.due.start) != (before.due.shift, before.due.start):
            raise StoppedError(f"{shift} is not due any more.")
        self._say(said_at_beginning(f"{shift} on {before.timetable.name}", before, hosts))
        return wish_for(fleet, found, shift, found.hosts(shift) & hosts)[0]

    def _run(self, name: str, found: Round, operation: Operation, make_wish: Callable[[Fleet], Wish]) -> None:
        """Carry out one switch, and report its end. This may run in a thread."""
        again, timetable = False, found.timetable.name
        try:
            with self._troubles.reporting_switch(timetable, found.due.ends):
                # Decision 0004: the Lease is taken in here, and only for a plan that is not empty.
                report = operation.carry_out(make_wish, former_wish)
                self._hooks.ended(timetable, report)
                for text in said_at_end(name, report):
                    self._say(text)
                self._troubles.forget(timetable)
                again = bool(report.steps) or report.interrupted
        finally:
            self._running.pop(timetable, None)
            if not self._running:
                self._idle.set()
            # Once it waits, the alarm must learn until when.
            if again or self._troubles.waiting(timetable):
                self._hooks.look_again()

    def _say(self, text: str) -> None:
        MutedOnFailure(self._make_listener()).say(text)
