"""vgpuctl daemon"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli import output
from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.listening import (
    CertOption,
    KeyOption,
    ListenOption,
    OpenlyOption,
    TokenOption,
    server_for,
)
from vgpuctl.cli.common import connected, console, showing_errors, stop_signals
from vgpuctl.cli.options import DebugOption
from vgpuctl.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from vgpuctl.daemon.serving.daemon_server import DaemonServer
    from vgpuctl.daemon.trial import Trial
    from vgpuctl.daemon.watched_files import WatchedFiles
    from vgpuctl.files import Files
    from vgpuctl.observe.wiring import Connection
    from vgpuctl.settings import Flags
    from vgpuctl.vsphere.property_filters import ObservationScope

OnceOption = Annotated[bool, typer.Option("--once", help="Put the shift that is due in force, and end.")]
TrialOption = Annotated[bool, typer.Option("--dry-run", help="Say at each start what would be done. Write nothing.")]


@with_access
def command(
    flags: Flags,
    once: OnceOption = False,
    dry_run: TrialOption = False,
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
      vgpuctl daemon --listen 9464       with health, status and metrics over HTTP
      vgpuctl daemon --dry-run           a trial: it only says what it would do
      vgpuctl daemon --once              for cron; the exit code says how it ended
    """
    given = {
        "listen": listen,
        "listen-cert": listen_cert,
        "listen-key": listen_key,
        "listen-token": listen_token,
        "listen-openly": listen_openly,
    }
    with showing_errors(debug=debug):
        if once:
            code = _once(flags, dry_run=dry_run)
            raise typer.Exit(int(code))
        if dry_run:
            _try(flags)
        else:
            _serve_and_keep(flags, given)


def _say(text: str) -> None:
    from vgpuctl.cli.acting.progress import Lines  # noqa: PLC0415
    from vgpuctl.engine.listening import MutedOnFailure  # noqa: PLC0415

    MutedOnFailure(Lines(console())).say(text)


def _scope(files: Files) -> ObservationScope:
    from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

    return ObservationScope(neighbours=True, drains=True, scales=files.scales)


def _serve_and_keep(flags: Flags, given: Mapping[str, object]) -> None:
    watched = watched_files(flags, _say)
    server = server_for(flags, given, watched, _say)
    if server is None:
        _keep(flags, watched)
        return
    # Probes are answered while the daemon waits for its first login.
    server.start()
    try:
        _keep(flags, watched, server)
    finally:
        server.stop()


def _keep(flags: Flags, watched: WatchedFiles, server: DaemonServer | None = None) -> None:
    from vgpuctl.cli.acting.progress import Lines  # noqa: PLC0415
    from vgpuctl.daemon.hooks import Hooks  # noqa: PLC0415
    from vgpuctl.daemon.own_node import refuse_on_worker  # noqa: PLC0415
    from vgpuctl.daemon.reports import said_at_start  # noqa: PLC0415
    from vgpuctl.daemon.schedule_loop import ScheduleLoop  # noqa: PLC0415

    files = watched.current()
    rings: SimpleQueue[None] = SimpleQueue()

    def ring() -> None:
        rings.put(None)

    # Decision 0018: kubelet would start it again after a refused login, and knows no rule about accounts.
    with connected(flags, files, _scope(files), lasting=True) as connection:
        refuse_on_worker(connection.fleet)
        leadership = connection.leadership(_say)
        hooks = Hooks(leading=leadership.leading, look_again=ring)
        hooks = server.counted(hooks) if server else hooks
        loop = ScheduleLoop(watched.current, connection, lambda: Lines(console()), hooks)
        rounds = Rounds(connection, watched, rings, server.counting(loop.keep) if server else loop.keep)
        leadership.on_change(ring)
        connection.on_ledger(ring)
        for text in said_at_start(files, datetime.now(UTC)):
            _say(text)
        leadership.start()
        if server:
            server.connect(connection, loop, leadership)
        try:
            rounds.run(loop.next_moment, loop.interrupt)
            loop.wait_until_idle()
        finally:
            leadership.stop()


def _try(flags: Flags) -> None:
    """Follow the timetables, and only say what would be done. No Lease is taken: that would be a write."""
    from vgpuctl.daemon.own_node import refuse_on_worker  # noqa: PLC0415

    watched = watched_files(flags, _say)
    files = watched.current()
    with connected(flags, files, _scope(files), lasting=True) as connection:
        refuse_on_worker(connection.fleet)
        trial = _trial(watched.current, connection)
        Rounds(connection, watched, SimpleQueue(), trial.keep).run(trial.next_moment, lambda: None)


def _trial(current_files: Callable[[], Files], connection: Connection) -> Trial:
    from vgpuctl.cli.acting.plans import headline  # noqa: PLC0415
    from vgpuctl.daemon.trial import Trial  # noqa: PLC0415

    return Trial(current_files, connection, _say, headline, lambda: datetime.now(UTC))


class Rounds:
    """Round after round until a signal comes, or until the files make a worker of our own node."""

    def __init__(
        self, connection: Connection, watched: WatchedFiles, rings: SimpleQueue[None], work: Callable[[], None]
    ) -> None:
        self._connection, self._watched, self._rings, self._work = connection, watched, rings, work
        self._held = connection.holds()
        self._refused: list[UsageError] = []

    def run(self, next_moment: Callable[[], datetime | None], interrupt: Callable[[], None]) -> None:
        from vgpuctl.daemon.alarm import Alarm  # noqa: PLC0415

        alarm = Alarm(next_moment, self._changed, _say, self._rings)
        self._connection.follow(ledger=True)

        def end(_number: int, _frame: object) -> None:
            alarm.end()
            interrupt()

        for number in stop_signals():
            signal.signal(number, end)
        with output.muting():
            alarm.run(lambda: self._round(lambda: end(0, None)))
        if self._refused:
            raise self._refused[0]

    def _round(self, end: Callable[[], None]) -> None:
        from vgpuctl.daemon.own_node import refuse_on_worker  # noqa: PLC0415

        self._held = self._connection.holds()
        self._work()
        try:
            # After the round, which takes in new files: only now does the picture show whom they name.
            refuse_on_worker(self._connection.fleet)
        except UsageError as error:
            self._refused.append(error)
            end()

    def _changed(self) -> bool:
        # Holds are on nodes, which change all the time. So holds are compared with those of the last round.
        return self._watched.changed() or self._connection.holds() != self._held


def _once(flags: Flags, *, dry_run: bool) -> ExitCode:
    """Do one round. No leading Lease is taken: as for a command, the acting one is enough."""
    from vgpuctl.cli.acting.progress import Lines  # noqa: PLC0415
    from vgpuctl.cli.common import read_all_files  # noqa: PLC0415
    from vgpuctl.daemon.hooks import Hooks  # noqa: PLC0415
    from vgpuctl.daemon.once import code_after, recording  # noqa: PLC0415
    from vgpuctl.daemon.own_node import refuse_on_worker  # noqa: PLC0415
    from vgpuctl.daemon.schedule_loop import ScheduleLoop  # noqa: PLC0415

    files = read_all_files(flags)
    codes: list[ExitCode] = []
    with connected(flags, files, _scope(files)) as connection:
        refuse_on_worker(connection.fleet)
        connection.follow(ledger=True)
        if dry_run:
            _trial(lambda: files, connection).keep()
            return ExitCode.DONE
        loop = ScheduleLoop(lambda: files, connection, lambda: Lines(console()), Hooks(make_operation=recording(codes)))
        for number in stop_signals():
            signal.signal(number, lambda _number, _frame: loop.interrupt())
        loop.keep()
        # A switch takes as long as it takes; a signal ends it.
        while not loop.wait_until_idle():
            pass
        return code_after(connection.fleet(), files, datetime.now(UTC), codes)


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
