"""Looks once, or again whenever the streams report something. No requests are sent meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NoReturn

from vgpuctl.cli.showing.estate.views import View
from vgpuctl.files import Files
from vgpuctl.observe.wiring import Connection
from vgpuctl.planning.selection import Selection
from vgpuctl.reporting.situation import Situation, situate

#: At most four looks a second, and four times as much rest as work: in a large estate something always changes.
PACE_S = 0.25
REST = 4
MINUTE_S = 60.0


@dataclass
class SituationSource:
    """Looks at the estate. `follow`: keep extra data up to date too. Names are checked once: workers may go later."""

    connection: Connection
    files: Files
    selection: Selection
    follow: bool = False
    _checked: bool = False
    _silent: dict[str, datetime] = field(default_factory=dict)

    def look(self) -> Situation:
        fleet, now = self.connection.fleet(), datetime.now().astimezone()
        if not self._checked:
            self.selection.check(fleet)
            self._checked = True
        self._silent = {name: self._silent.get(name, now) for name in fleet.stale}
        seen = situate(fleet, self.files.catalogue, self.files.timetables.values(), self.selection, now)
        # Kubernetes: a pod counts against its quota while it waits. Without such pods, quotas are not asked for.
        if seen.waiting:
            seen = seen.with_quotas(self.connection.quotas(follow=self.follow))
        # kubernetes#117658: sleeping nodes hold up rollouts. Without sleepers, DaemonSets are not asked for.
        if any(not worker.on and worker.node for worker in fleet.workers.values()):
            seen = seen.with_rollouts(self.connection.rollouts(follow=self.follow))
        return replace(seen, stale=self._silent)


class RedrawTimer:
    """Starts a look when a change is reported, and at each full minute, when displayed times are out of date."""

    def __init__(self) -> None:
        self._changed = threading.Event()
        self._last_s = time.monotonic()

    def changed(self) -> None:
        self._changed.set()

    def wait(self, now: datetime) -> None:
        """Wait for the next look. `now` is when the last one was taken."""
        rest_s = max(PACE_S, REST * (time.monotonic() - self._last_s))
        self._changed.wait(MINUTE_S - now.second - now.microsecond / 1e6)
        time.sleep(max(0.0, self._last_s + rest_s - time.monotonic()))
        self._changed.clear()
        self._last_s = time.monotonic()


def watch(look: Callable[[], Situation], wait: Callable[[datetime], None], view: View) -> NoReturn:
    """Look again and again until the process is ended."""
    with view:
        while True:
            seen = look()
            view.show(seen)
            wait(seen.now)
