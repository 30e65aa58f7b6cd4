"""One round of the daemon: find the current shift, compare the fleet with it, and do what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from vgpuctl.basics.durations import format_duration
from vgpuctl.engine.listening import MutedOnFailure
from vgpuctl.engine.ports import World
from vgpuctl.engine.runner import Listener
from vgpuctl.files import Files
from vgpuctl.model.errors import ExitCode, PassingError, VgpuctlError, with_place
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable
from vgpuctl.model.wish import Wish
from vgpuctl.operations import Operation, exit_code, look_ahead, unfinished_hosts
from vgpuctl.planning.wishes import former_wish, switch_wish

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(minutes=30)


class Connection(Protocol):
    def observe(self, catalogue: Catalogue, *, scales: bool) -> None: ...
    def fleet(self) -> Fleet: ...
    def world(self) -> World: ...


@dataclass(frozen=True, slots=True)
class BackOff:
    """The pause after failures of one shift. Each failure doubles it; another shift starts anew."""

    shift: str
    until: datetime
    pause: timedelta


class ScheduleLoop:
    """Level-triggered: it compares the world with the current shift, and remembers only its back-off.

    `current_files` returns the same object until the files change. A switch ends with the files with which it began.
    `make_listener` makes a listener for each operation, so that each reports its own steps. Nothing raises here: a
    fault of ours is reported with its place, and the next round comes.
    """

    def __init__(
        self,
        current_files: Callable[[], Files],
        connection: Connection,
        make_listener: Callable[[], Listener],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._current_files, self._connection, self._now = current_files, connection, now
        self._make_listener, self._files = make_listener, current_files()
        self._back_off: dict[str, BackOff] = {}
        self._operation: Operation | None = None
        self._ending = False

    def interrupt(self) -> None:
        self._ending = True
        if self._operation is not None:
            self._operation.interrupt()

    def next_start(self) -> datetime | None:
        """Return the next start of a shift; None if it cannot be computed. The next round comes anyway."""
        try:
            starts = [timetable.next_start(self._now()) for timetable in self._files.timetables.values()]
            return min((start for found in starts if found for start in found[1:]), default=None)
        except Exception as error:
            self._say(f"The start of the next shift is not known: {with_place(error)}")
            return None

    def keep(self) -> None:
        """Carry out the shift that is due in each timetable, and in each that appears meanwhile."""
        files: Files | None = None
        while files is not self._files_now() and not self._ending:
            files = self._files
            for name in tuple(files.timetables):
                self._keep_timetable(name)

    def _keep_timetable(self, name: str) -> None:
        try:
            # The switch before may have taken an hour, and the files may have changed meanwhile.
            timetable = self._files_now().timetables.get(name)
            # The wish is that of now, not of the last alarm: a start that was missed is made up for.
            due = timetable.shift_at(self._now()) if timetable else None
            if timetable and due and not self._ending:
                self._keep(timetable, due[0].name)
        except Exception as error:
            self._say(f"{name} could not be checked: {with_place(error)}")

    def _files_now(self) -> Files:
        """Return the files in force. With new ones, earlier failures say nothing any more."""
        files = self._current_files()
        if files is not self._files:
            self._files = files
            self._back_off.clear()
        return files

    def _keep(self, timetable: Timetable, shift: str) -> None:
        back_off = self._back_off.get(timetable.name)
        if back_off and back_off.shift == shift and self._now() < back_off.until:
            return
        try:
            code = self._switch(timetable, shift)
        except VgpuctlError as error:
            self._say(f"{shift} on {timetable.name}: {error.message}")
            code = error.exit_code
        except Exception as error:
            self._say(f"{shift} on {timetable.name} failed through a bug in vgpuctl: {with_place(error)}")
            code = ExitCode.FAILED
        if code in {ExitCode.FAILED, ExitCode.WENT_BACK, ExitCode.REFUSED}:
            self._begin_back_off(timetable.name, shift)
        elif code is ExitCode.DONE:
            self._back_off.pop(timetable.name, None)

    def _switch(self, timetable: Timetable, shift: str) -> ExitCode:
        files = self._files

        def wish(fleet: Fleet) -> Wish:
            files.check_unique(fleet)
            return switch_wish(fleet, files.catalogue, timetable, shift, self._now())

        self._connection.observe(files.catalogue, scales=files.scales)
        fleet = self._connection.fleet()
        # Decision 0018: nothing is decided on an old picture.
        if unheard := fleet.unheard():
            raise PassingError(f"{unheard}.")
        preview = look_ahead(fleet, wish(fleet))
        for refusal in preview.refusals:
            self._say(f"{shift} on {timetable.name} is refused: {refusal.message} {refusal.hint}")
        if not preview.plan:
            return ExitCode.REFUSED if preview.refusals else ExitCode.DONE
        self._say(f"{shift} on {timetable.name} begins.")
        self._operation = Operation(
            world=self._connection.world(), listener=self._make_listener(), timetable=timetable.name
        )
        # Decision 0004: the Lease is taken in here, and only for a plan that is not empty.
        report = self._operation.carry_out(wish, former_wish)
        if report.unheard:
            self._say(f"{shift} on {timetable.name} stopped: {' and '.join(report.unheard)} did not answer.")
        for host in unfinished_hosts(report):
            self._say(f"{host.host} {host.end}: {host.why}")
        code = exit_code(report, refused=bool(preview.refusals))
        if code is ExitCode.DONE:
            self._say(f"It is {shift} on {timetable.name}, after {format_duration(report.seconds)}.")
        return code

    def _begin_back_off(self, timetable: str, shift: str) -> None:
        before = self._back_off.get(timetable)
        same_shift = before is not None and before.shift == shift
        pause = min(before.pause * 2, LONGEST_PAUSE) if before and same_shift else FIRST_PAUSE
        self._back_off[timetable] = BackOff(shift, self._now() + pause, pause)
        self._say(f"Next try for {shift} on {timetable} in {format_duration(pause.total_seconds())}.")

    def _say(self, text: str) -> None:
        MutedOnFailure(self._make_listener()).say(text)
