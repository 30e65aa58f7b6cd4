"""vgpuctl daemon"""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import TYPE_CHECKING

from vgpuctl.cli import output
from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import connected, console, showing_errors, stop_signals
from vgpuctl.cli.options import DebugOption

if TYPE_CHECKING:
    from vgpuctl.daemon.watched_files import WatchedFiles
    from vgpuctl.files import Files
    from vgpuctl.settings import Flags


@with_access
def command(
    flags: Flags,
    debug: DebugOption = False,
) -> None:
    """Follow the timetables: keep the current shift on the cards until stopped.

    It checks the fleet at the start of each shift and at least once a minute, and then does what `vgpuctl switch` does.
    Changes of the files count within seconds; while a file is broken, the last good ones stay in force.

    Examples:

      vgpuctl daemon
      vgpuctl daemon --config /etc/vgpuctl/config.yaml
    """
    with showing_errors(debug=debug):
        _keep(flags)


def _keep(flags: Flags) -> None:
    from vgpuctl.cli.acting.progress import Lines  # noqa: PLC0415
    from vgpuctl.daemon.alarm import Alarm  # noqa: PLC0415
    from vgpuctl.daemon.hooks import Hooks  # noqa: PLC0415
    from vgpuctl.daemon.reports import said_at_start  # noqa: PLC0415
    from vgpuctl.daemon.schedule_loop import ScheduleLoop  # noqa: PLC0415
    from vgpuctl.engine.listening import MutedOnFailure  # noqa: PLC0415
    from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

    def say(text: str) -> None:
        MutedOnFailure(Lines(console())).say(text)

    watched = watched_files(flags, say)
    files = watched.current()
    scope = ObservationScope(neighbours=True, drains=True, scales=files.scales)
    rings: SimpleQueue[None] = SimpleQueue()

    def ring() -> None:
        rings.put(None)

    # Decision 0018: kubelet would start it again after a refused login, and knows no rule about accounts.
    with connected(flags, files, scope, lasting=True) as connection:
        leadership = connection.leadership(say)
        loop = ScheduleLoop(
            watched.current, connection, lambda: Lines(console()), Hooks(leading=leadership.leading, look_again=ring)
        )
        held = connection.holds()

        def keep() -> None:
            nonlocal held
            held = connection.holds()
            loop.keep()

        def changed() -> bool:
            # Holds are on nodes, which change all the time. So holds are compared with those of the last round.
            return watched.changed() or connection.holds() != held

        alarm = Alarm(loop.next_moment, changed, say, rings)
        leadership.on_change(ring)
        connection.on_ledger(ring)
        connection.follow(ledger=True)

        def end(_number: int, _frame: object) -> None:
            alarm.end()
            loop.interrupt()

        for number in stop_signals():
            signal.signal(number, end)
        for text in said_at_start(files, datetime.now(UTC)):
            say(text)
        leadership.start()
        try:
            with output.muting():
                alarm.run(keep)
                loop.wait_until_idle()
        finally:
            leadership.stop()


def watched_files(flags: Flags, say: Callable[[str], None]) -> WatchedFiles:
    """Return the files that these flags name. UsageError if they are broken now."""
    from vgpuctl.daemon.watched_files import WatchedFiles, fingerprints  # noqa: PLC0415
    from vgpuctl.files import read_files  # noqa: PLC0415
    from vgpuctl.settings import existing_schedules, profiles_path  # noqa: PLC0415

    profiles, schedules = profiles_path(flags), existing_schedules(flags)

    def read() -> Files:
        # As at the start: the folder must exist if it was named.
        existing_schedules(flags)
        return read_files(profiles, schedules)

    return WatchedFiles(fingerprints(profiles, schedules), read, say)
