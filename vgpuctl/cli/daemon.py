"""vgpuctl daemon"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from vgpuctl.cli.common import connected, console, explained, read
from vgpuctl.cli.options import (
    ContextOption,
    DebugOption,
    KubeconfigOption,
    NamespaceOption,
    ProfilesOption,
    SchedulesOption,
)

if TYPE_CHECKING:
    from vgpuctl.settings import Flags


def command(
    profiles: ProfilesOption = None,
    schedules: SchedulesOption = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    debug: DebugOption = False,
) -> None:
    """Keep the shift of the hour, by every timetable, until it is ended.

    It looks at the world at the start of each shift and at least every minute, and does what `vgpuctl switch` does.
    """
    from vgpuctl.settings import Flags  # noqa: PLC0415

    flags = Flags(profiles=profiles, schedules=schedules, kubeconfig=kubeconfig, context=context, namespace=namespace)
    with explained(debug=debug):
        _keep(flags)


def _keep(flags: Flags) -> None:
    from vgpuctl.cli.progress import Lines  # noqa: PLC0415
    from vgpuctl.daemon.alarm import Alarm  # noqa: PLC0415
    from vgpuctl.daemon.keeper import Keeper  # noqa: PLC0415

    files = read(flags)
    with connected(flags, files) as connection:
        connection.follow()
        keeper = Keeper(files, connection, Lines(console()))
        alarm = Alarm(keeper.next_start)

        def end(_number: int, _frame: object) -> None:
            alarm.end()
            keeper.interrupt()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)
        alarm.each(keeper.keep)
