"""What every command needs around its work: errors in plain words, a connection, a question."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from vgpuctl.basics.durations import format_duration
from vgpuctl.cli import output
from vgpuctl.model.errors import ExitCode, StoppedError, UsageError, VgpuctlError

if TYPE_CHECKING:
    from vgpuctl.cli.safe_console import SafeConsole
    from vgpuctl.files import Files
    from vgpuctl.observe.wiring import Connection
    from vgpuctl.settings import Flags
    from vgpuctl.vsphere.property_filters import ObservationScope

#: The signals that ask this process to end.
#: POSIX: SIGHUP is what a closed terminal sends.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: The least pauses before another try: of a server that does not answer, and of a login that was refused.
PAUSE_S, LOGIN_PAUSE_S = 0.5, 1.0


def console(*, error: bool = False) -> SafeConsole:
    from vgpuctl.cli.safe_console import SafeConsole  # noqa: PLC0415

    return SafeConsole(error=error)


@contextmanager
def showing_errors(*, debug: bool = False) -> Iterator[None]:
    """Show errors without a traceback unless it was asked for; each error ends the process with its own code."""
    try:
        yield
    except StoppedError as error:
        console(error=True).print_text(error.message)
        raise typer.Exit(int(error.exit_code)) from None
    except VgpuctlError as error:
        if debug:
            raise
        show_error(error.message, error.hint)
        raise typer.Exit(int(error.exit_code)) from None
    except typer.Exit:
        raise
    except Exception as error:
        if debug or error is output.failure():
            raise
        show_error(
            f"Unexpected: {type(error).__name__}: {error}",
            "This is a bug in vgpuctl. Run the command again with --debug, and report it.",
        )
        raise typer.Exit(int(ExitCode.FAILED)) from None
    except KeyboardInterrupt:
        console(error=True).print_text("Stopped at once. To go on, run the same command again.")
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None


def show_error(message: str, hint: str | None) -> None:
    out = console(error=True)
    out.print_labelled("Error:", message, "bold red")
    if hint:
        out.print_labelled("Hint:", hint)


def read_all_files(flags: Flags) -> Files:
    from vgpuctl.files import read_files  # noqa: PLC0415
    from vgpuctl.settings import existing_schedules, profiles_path  # noqa: PLC0415

    return read_files(profiles_path(flags), existing_schedules(flags))


@contextmanager
def connected(
    flags: Flags, files: Files, scope: ObservationScope | None = None, *, lasting: bool = False
) -> Iterator[Connection]:
    """Connect to both servers and read them once.

    A server that does not answer gets a little time, visibly. `lasting`: try a refused login again, at a pace that
    keeps the account unlocked. If kubelet restarted the process instead, that pace would be lost.
    """
    from vgpuctl.observe.wiring import Connection  # noqa: PLC0415
    from vgpuctl.settings import settings  # noqa: PLC0415

    raise_on_stop_signals()
    found = settings(flags)
    connection = Connection(found, files.catalogue, scope)
    for server in connection.unverified:
        warn_unverified(server)
    try:
        _open(connection, found.connect_s, lasting=lasting)
        yield connection
    finally:
        # Decision 0018: no session is left behind, also if Kubernetes did not answer or SIGTERM came.
        connection.close()


def raise_on_stop_signals() -> None:
    """Log out first at SIGTERM and at a closed terminal, as at Ctrl-C."""
    # Python: only the main thread may set handlers.
    if threading.current_thread() is not threading.main_thread():
        return
    for number in stop_signals():
        signal.signal(number, signal.default_int_handler)


def stop_signals() -> list[int]:
    """Return the signals that ask this process to end. Signals that `nohup` ignores stay ignored."""
    return [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def warn_unverified(server: str) -> None:
    console(error=True).print_text(f"The certificate of {server} is not verified, because you asked for that.")


def _open(connection: Connection, connect_s: float, *, lasting: bool) -> None:
    from vgpuctl.vsphere.session import LoginRefusedError  # noqa: PLC0415
    from vgpuctl.wire.retries import retry  # noqa: PLC0415

    shown: list[VgpuctlError] = []

    def show_once(error: VgpuctlError) -> None:
        if not shown:
            text = error.message.rstrip(".")
            text = text if text.startswith("vCenter") else f"{text[0].upper()}{text[1:]}"
            console(error=True).print_text(f"{text}. Trying again for {format_duration(connect_s)}.")
        shown.append(error)

    while True:
        try:
            retry(connection.open, PAUSE_S, connect_s, on_failure=show_once)
            return
        # Decision 0018: a command gives up at the first refusal, for refusals lock accounts.
        except LoginRefusedError as error:
            if not lasting:
                raise
            show_error(error.message, error.hint)
            time.sleep(max(LOGIN_PAUSE_S, error.after_s))


def confirmed(question: str, *, yes: bool) -> bool:
    """Ask on a terminal. Without one, --yes is required."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "This changes pods or running VMs, and there is no terminal for the question.",
            hint="Add --yes, or see the plan with --dry-run. Nothing was changed.",
        )
    return typer.confirm(question)


def print_json(document: dict[str, Any]) -> None:
    from vgpuctl.cli.documents import as_json  # noqa: PLC0415

    print(as_json(document), flush=True)
