"""vgpuctl daemon"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from vgpuctl.cli import output
from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import connected, console, read_all_files, showing_errors, stop_signals
from vgpuctl.cli.options import DebugOption

if TYPE_CHECKING:
    from vgpuctl.settings import Flags


@with_access
def command(
    flags: Flags,
    debug: DebugOption = False,
) -> None:
    """Follow the timetables: keep the current shift on the cards until stopped.

    It checks the fleet at the start of each shift and at least once a minute, and then does what `vgpuctl switch` does.

    Examples:

      vgpuctl daemon
      vgpuctl daemon --config /etc/vgpuctl/config.yaml
    """
    with showing_errors(debug=debug):
        _keep(flags)


def _keep(flags: Flags) -> None:
    from vgpuctl.cli.acting.progress import Lines  # noqa: PLC0415
    from vgpuctl.daemon.alarm import Alarm  # noqa: PLC0415
    from vgpuctl.daemon.schedule_loop import ScheduleLoop  # noqa: PLC0415
    from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

    files = read_all_files(flags)
    scope = ObservationScope(neighbours=True, drains=True, scales=files.scales)
    # Decision 0018: kubelet would start it again after a refused login, and knows no rule about accounts.
    with connected(flags, files, scope, lasting=True) as connection:
        connection.follow(departures=True)
        keeper = ScheduleLoop(files, connection, lambda: Lines(console()))
        alarm = Alarm(keeper.next_start)

        def end(_number: int, _frame: object) -> None:
            alarm.end()
            keeper.interrupt()

        for number in stop_signals():
            signal.signal(number, end)
        with output.muting():
            alarm.run(keeper.keep)
