"""The files in force: read again when they change. While they are broken, the last good ones stay in force."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vgpuctl.basics.changing_files import fingerprint_of
from vgpuctl.files import Files
from vgpuctl.model.errors import UsageError, VgpuctlError, with_place

#: A file that stands still for so long is no longer being written. kubelet and editors replace files at once, but
#: `cp` and shells write into them.
SETTLE_S = 0.5
MOST_TRIES = 20
#: Broken files are read again although they look the same: the fault may be the disk's, and pass.
AGAIN_EVERY = timedelta(minutes=1)
REMIND_EVERY = timedelta(hours=1)


def fingerprints(profiles: Path, schedules: Path) -> Callable[[], object]:
    """Return a function whose result changes when one of the files changes, appears or vanishes. It reads no file."""
    # A pipe can be read only once.
    if not profiles.is_file():
        return lambda: None

    def fingerprint() -> object:
        timetables = sorted(schedules.glob("*.yaml")) if schedules.is_dir() else [schedules]
        return tuple(fingerprint_of(path) for path in (profiles, *timetables))

    return fingerprint


class WatchedFiles:
    """The files as they are on disk, as long as these are good. The first reading raises what is wrong.

    `fingerprint` changes when the files do. `say` logs one line.
    """

    def __init__(
        self,
        fingerprint: Callable[[], object],
        read: Callable[[], Files],
        say: Callable[[str], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._fingerprint, self._read, self._say, self._now, self._sleep = fingerprint, read, say, now, sleep
        # Taken before the reading: what changes meanwhile is a change.
        self._seen = fingerprint()
        self._files, self._good_at = read(), now()
        self._fault, self._tried_at, self._said_at = "", now(), now()

    @property
    def good_at(self) -> datetime:
        """When the files in force were read."""
        return self._good_at

    @property
    def broken(self) -> bool:
        """True if the files on disk cannot be used, and older ones are in force."""
        return bool(self._fault)

    def changed(self) -> bool:
        """True if the files have changed since they were read."""
        return self._fingerprint() != self._seen

    def current(self) -> Files:
        """Return the files in force: those on disk now, or the last good ones. It never raises."""
        changed = False
        try:
            changed = self.changed()
            if changed or (self._fault and self._now() >= self._tried_at + AGAIN_EVERY):
                self._take_in()
        except Exception as error:
            self._keep_last(error, changed=changed)
        return self._files

    def _take_in(self) -> None:
        self._tried_at = self._now()
        files = self._read_still()
        if self._fault:
            self._say("The files are good again.")
        if files != self._files:
            self._files = files
            self._say(f"The files have changed. In force now: {', '.join(files.timetables) or 'no timetable'}.")
        self._fault, self._good_at = "", self._now()

    def _read_still(self) -> Files:
        """Read the files while none of them is being written, and no ConfigMap is being replaced."""
        for _ in range(MOST_TRIES):
            self._seen = self._fingerprint()
            self._sleep(SETTLE_S)
            try:
                files = self._read()
            except Exception:
                # A fault of a file that is half written is none.
                if not self.changed():
                    raise
            else:
                if not self.changed():
                    return files
        raise UsageError("The files change again and again while they are read.")

    def _keep_last(self, error: Exception, *, changed: bool) -> None:
        """Log a fault once after each change, and then in one line an hour."""
        fault = error.message if isinstance(error, VgpuctlError) else f"The files cannot be read: {with_place(error)}"
        is_new, self._fault = changed or fault != self._fault, fault
        if not is_new and self._now() < self._said_at + REMIND_EVERY:
            return
        self._said_at = self._now()
        lines = fault.splitlines()
        for line in lines if is_new else ():
            self._say(line)
        still = "" if is_new else f"{lines[0].rstrip(':.')}, still. "
        self._say(f"{still}The files of {self._good_at.astimezone():%Y-%m-%d %H:%M} stay in force.")
