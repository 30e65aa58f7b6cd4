"""vgpuctl daemon"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli import output
from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import connected, console, showing_errors, stop_signals
from vgpuctl.cli.options import DebugOption
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.daemon.serving.daemon_server import DaemonServer
    from vgpuctl.daemon.watched_files import WatchedFiles
    from vgpuctl.files import Files
    from vgpuctl.settings import Flags

#: What the extra `daemon` brings.
SERVING_PACKAGES = ("starlette", "uvicorn", "prometheus_client")
ListenOption = Annotated[
    str | None,
    typer.Option(metavar="[HOST:]PORT", help="Serve health, status and metrics over HTTP.", show_default=False),
]
CertOption = Annotated[Path | None, typer.Option(help="The certificate of that server, in PEM.", show_default=False)]
KeyOption = Annotated[Path | None, typer.Option(help="The certificate's key, in PEM.", show_default=False)]
TokenOption = Annotated[
    Path | None, typer.Option(help="A file with the bearer token that readers need.", show_default=False)
]
OpenlyOption = Annotated[
    bool | None,
    typer.Option("--listen-openly", help="Let other machines read without a token or TLS.", show_default=False),
]


@with_access
def command(
    flags: Flags,
    listen: ListenOption = None,
    listen_cert: CertOption = None,
    listen_key: KeyOption = None,
    listen_token: TokenOption = None,
    listen_openly: OpenlyOption = None,
    debug: DebugOption = False,
) -> None:
    """Follow the timetables: keep the current shift on the cards until stopped.

    It checks the fleet at the start of each shift and at least once a minute, and then does what `vgpuctl switch` does.
    Changes of the files count within seconds; while a file is broken, the last good ones stay in force.

    Examples:

      vgpuctl daemon
      vgpuctl daemon --config /etc/vgpuctl/config.yaml
      vgpuctl daemon --listen 9464
    """
    given = {
        "listen": listen,
        "listen-cert": listen_cert,
        "listen-key": listen_key,
        "listen-token": listen_token,
        "listen-openly": listen_openly,
    }
    with showing_errors(debug=debug):
        _serve_and_keep(flags, given)


def _serve_and_keep(flags: Flags, given: Mapping[str, object]) -> None:
    from vgpuctl.cli.acting.progress import Lines  # noqa: PLC0415
    from vgpuctl.engine.listening import MutedOnFailure  # noqa: PLC0415

    def say(text: str) -> None:
        MutedOnFailure(Lines(console())).say(text)

    watched = watched_files(flags, say)
    server = _server(flags, given, watched, say)
    if server is None:
        _keep(flags, watched, say)
        return
    # Probes are answered while the daemon waits for its first login.
    server.start()
    try:
        _keep(flags, watched, say, server)
    finally:
        server.stop()


def _server(
    flags: Flags, given: Mapping[str, object], watched: WatchedFiles, say: Callable[[str], None]
) -> DaemonServer | None:
    """Return the HTTP server that is asked for, which already listens; None if none is."""
    from vgpuctl.settings.listening import listening  # noqa: PLC0415

    address = listening(flags, given)
    if address is None:
        return None
    if missing := [name for name in SERVING_PACKAGES if find_spec(name) is None]:
        raise UsageError(
            f"The HTTP server is not installed: {', '.join(missing)} missing.",
            hint="Install it with: pip install 'vgpuctl[daemon]'",
        )
    from vgpuctl.daemon.serving.daemon_server import DaemonServer  # noqa: PLC0415

    return DaemonServer(address, watched, say)


def _keep(flags: Flags, watched: WatchedFiles, say: Callable[[str], None], server: DaemonServer | None = None) -> None:
    from vgpuctl.cli.acting.progress import Lines  # noqa: PLC0415
    from vgpuctl.daemon.alarm import Alarm  # noqa: PLC0415
    from vgpuctl.daemon.hooks import Hooks  # noqa: PLC0415
    from vgpuctl.daemon.reports import said_at_start  # noqa: PLC0415
    from vgpuctl.daemon.schedule_loop import ScheduleLoop  # noqa: PLC0415
    from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

    files = watched.current()
    scope = ObservationScope(neighbours=True, drains=True, scales=files.scales)
    rings: SimpleQueue[None] = SimpleQueue()

    def ring() -> None:
        rings.put(None)

    # Decision 0018: kubelet would start it again after a refused login, and knows no rule about accounts.
    with connected(flags, files, scope, lasting=True) as connection:
        leadership = connection.leadership(say)
        hooks = Hooks(leading=leadership.leading, look_again=ring)
        hooks = server.counted(hooks) if server else hooks
        loop = ScheduleLoop(watched.current, connection, lambda: Lines(console()), hooks)
        rounds = server.counting(loop.keep) if server else loop.keep
        held = connection.holds()

        def keep() -> None:
            nonlocal held
            held = connection.holds()
            rounds()

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
        if server:
            server.connect(connection, loop, leadership)
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
