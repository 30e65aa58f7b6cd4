"""What provision, label-nodes and switch share: look ahead, show, ask, carry out, report the end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from vgpuctl.cli import output
from vgpuctl.cli.common import STOP_SIGNALS, connected, console, explained, may_go_on, print_json, read
from vgpuctl.cli.options import Output
from vgpuctl.model.errors import ExitCode
from vgpuctl.model.names import fold

if TYPE_CHECKING:
    from vgpuctl.engine.ports import Report
    from vgpuctl.files import Files
    from vgpuctl.model.journal import HostReport
    from vgpuctl.observe.wiring import Connection
    from vgpuctl.operations import MakeFormer, MakeWish, Operation, Preview
    from vgpuctl.settings import Flags
    from vgpuctl.vsphere.property_filters import ObservationScope


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options that a command was run with."""

    flags: Flags
    output: Output = Output.TABLE
    dry_run: bool = False
    yes: bool = False
    debug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """What a command wants: a wish, the way back from it, and its words."""

    wish: MakeWish
    former: MakeFormer | None
    nothing: Callable[[Preview], str]
    done: Callable[[Preview, Report], str]
    scope: ObservationScope | None = None
    timetable: str = ""


def act(manner: RunOptions, order: Callable[[Files], CommandSpec]) -> None:
    """Carry out a command. The process ends with the exit code of the result."""
    with explained(debug=manner.debug):
        files = read(manner.flags)
        found = order(files)
        with connected(manner.flags, files, found.scope) as connection:
            code = _act(manner, found, connection)
        raise typer.Exit(int(code))


def _act(manner: RunOptions, order: CommandSpec, connection: Connection) -> ExitCode:
    from vgpuctl.operations import look_ahead  # noqa: PLC0415

    fleet = connection.fleet()
    preview = look_ahead(fleet, order.wish(fleet))
    if manner.dry_run:
        return _dry_run(manner, order, _informed(preview, connection))
    if not preview.plan:
        return _nothing(manner, order, preview)
    question = preview.touches and not manner.yes
    if question or preview.refusals or preview.remarks:
        from vgpuctl.cli.acting.plans import show_plan, show_remarks  # noqa: PLC0415

        out = console(error=manner.output is Output.JSON)
        if question or preview.refusals:
            show_plan(out, _informed(preview, connection))
        else:
            show_remarks(out, preview)
    if question and not may_go_on("Go on?", yes=manner.yes):
        console().print("Nothing was changed.")
        return ExitCode.DONE
    return _carry_out(manner, order, connection, preview)


def _informed(preview: Preview, connection: Connection) -> Preview:
    """Add how long the steps took earlier. The history is read only when a plan is shown."""
    from vgpuctl.operations import informed  # noqa: PLC0415

    return informed(preview, connection.history())


def _dry_run(manner: RunOptions, order: CommandSpec, preview: Preview) -> ExitCode:
    from vgpuctl.cli.acting.plans import plan_document, show_plan  # noqa: PLC0415

    if manner.output is Output.JSON:
        print_json(plan_document(preview))
    else:
        show_plan(console(), preview)
        if not preview.plan and not preview.refusals:
            console().tell(order.nothing(preview))
        console().print("Nothing was changed.")
    return ExitCode.REFUSED if preview.refusals else ExitCode.DONE


def _nothing(manner: RunOptions, order: CommandSpec, preview: Preview) -> ExitCode:
    from vgpuctl.engine.ports import Report  # noqa: PLC0415
    from vgpuctl.operations import refused  # noqa: PLC0415

    if preview.refusals:
        raise refused(preview)
    if manner.output is Output.JSON:
        print_json(report_document(Report(wish=preview.wish.name), preview))
    else:
        console().tell(order.nothing(preview))
        _tell_missing(preview)
    return ExitCode.DONE


def _carry_out(manner: RunOptions, order: CommandSpec, connection: Connection, preview: Preview) -> ExitCode:
    """Carry out the plan. Even if output fails, the work ends in order, and the exit code reports the result."""
    from vgpuctl.cli.acting.progress import screen  # noqa: PLC0415
    from vgpuctl.operations import Operation, exit_code  # noqa: PLC0415

    connection.follow()
    with output.muting():
        with screen(console(), quiet=manner.output is Output.JSON) as listener:
            operation = Operation(world=connection.world(), listener=listener, timetable=order.timetable)
            with _interruptible(operation):
                report = operation.carry_out(order.wish, order.former)
        code = exit_code(report, refused=bool(preview.refusals))
        _show_end(manner, order, preview, report, code)
    if told := output.complaint():
        console(error=True).tell(told)
        if manner.output is Output.JSON and code is ExitCode.DONE:
            # The document was requested, but it was not written.
            return ExitCode.FAILED
    return code


def _show_end(manner: RunOptions, order: CommandSpec, preview: Preview, report: Report, code: ExitCode) -> None:
    if manner.output is Output.JSON:
        print_json(report_document(report, preview) | {"exitCode": int(code)})
        return
    _tell(report, code, order, preview)
    _tell_missing(preview)


def _tell(report: Report, code: ExitCode, order: CommandSpec, preview: Preview) -> None:
    from vgpuctl.operations import troubled  # noqa: PLC0415
    from vgpuctl.reporting.causes import Stopped  # noqa: PLC0415
    from vgpuctl.reporting.codes import more_about  # noqa: PLC0415

    out = console(error=code is not ExitCode.DONE)
    for (end, why), hosts in _alike(troubled(report)).items():
        out.say(f"{' '.join(fold(hosts))} {end}{':' if why else ''}", why, "bold red")
    if more := more_about(host.code for host in troubled(report) if host.code != Stopped.code):
        out.tell(more)
    if report.unheard:
        names = " and ".join(report.unheard)
        out.tell(f"Stopped: {names} could not be heard for too long. Run the same command to go on.")
    elif report.interrupted:
        or_else = ", or another shift to go there" if order.timetable else ""
        out.tell(f"Stopped after what was in flight. Run the same command to go on{or_else}.")
    elif code is ExitCode.DONE:
        out.tell(order.done(preview, report))


def _alike(hosts: Iterable[HostReport]) -> dict[tuple[str, str], list[str]]:
    """Group the hosts with the same end and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        found.setdefault((host.end, host.why), []).append(host.host)
    return found


def _tell_missing(preview: Preview) -> None:
    for name in preview.fleet.missing:
        console(error=True).tell(f"{name} is in profiles.yaml, but no VM of vCenter has this name.")


@contextmanager
def _interruptible(operation: Operation) -> Iterator[None]:
    """Finish only the steps in flight at the first Ctrl-C, and end at once at the second.

    SIGTERM and a closed terminal's SIGHUP count like Ctrl-C; signals that `nohup` ignores stay ignored.
    """
    asked: list[int] = []

    def handle(number: int, _frame: object) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt
        operation.interrupt()

    heeded = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def report_document(report: Report, preview: Preview) -> dict[str, Any]:
    from vgpuctl.model.journal import host_document  # noqa: PLC0415

    return {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "Report",
        "wish": report.wish,
        "seconds": round(report.seconds, 3),
        "interrupted": report.interrupted,
        "unheard": list(report.unheard),
        "hosts": [host_document(host) for host in report.hosts],
        "steps": [
            {"worker": step.worker, "step": step.step, "seconds": round(step.seconds, 3)} for step in report.steps
        ],
        "refusals": [{"host": each.host, "code": each.code, "message": each.message} for each in preview.refusals],
        "missing": list(preview.fleet.missing),
    }
