"""What provision, label-nodes and switch share: look ahead, show, ask, carry out, report the end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from vgpuctl.basics.names import fold
from vgpuctl.cli import output
from vgpuctl.cli.common import confirmed, connected, console, print_json, read_all_files, showing_errors, stop_signals
from vgpuctl.cli.options import Output
from vgpuctl.model.errors import ExitCode

if TYPE_CHECKING:
    from vgpuctl.engine.ports import Report
    from vgpuctl.files import Files
    from vgpuctl.model.fleet import Fleet
    from vgpuctl.model.journal import HostReport
    from vgpuctl.observe.wiring import Connection
    from vgpuctl.operations import MakeFormer, MakeWish, Operation, Preview
    from vgpuctl.planning.ordering import SwitchOrder
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
    """What a command wants: a wish, the way back from it, and its words.

    `more`: more keys of its document. `order`: the order that it leaves for a daemon, by the person's name.
    """

    wish: MakeWish
    former: MakeFormer | None
    nothing_to_do: Callable[[Preview], str]
    done_text: Callable[[Preview, Report], str]
    scope: ObservationScope | None = None
    timetable: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    order: Callable[[str, Fleet], SwitchOrder] | None = None

    def including_held(self) -> CommandSpec:
        """Return the same spec, for held workers too."""
        return replace(self, wish=lambda fleet: replace(self.wish(fleet), include_held=True))


def act(options: RunOptions, make_spec: Callable[[Files], CommandSpec]) -> None:
    """Carry out a command. The process ends with the exit code of the result."""
    with showing_errors(debug=options.debug):
        files = read_all_files(options.flags)
        spec = make_spec(files)
        with connected(options.flags, files, spec.scope) as connection:
            code = _act(options, spec, connection)
        raise typer.Exit(int(code))


def _act(options: RunOptions, spec: CommandSpec, connection: Connection) -> ExitCode:
    from vgpuctl.operations import look_ahead  # noqa: PLC0415

    fleet = connection.fleet()
    preview = look_ahead(fleet, spec.wish(fleet))
    if options.dry_run:
        return dry_run_shown(options, spec, with_earlier(preview, connection))
    if not preview.plan:
        return _nothing(options, spec, preview, connection)
    question = preview.disturbs and not options.yes
    if question or preview.refusals or preview.remarks:
        from vgpuctl.cli.acting.plans import show_plan, show_remarks  # noqa: PLC0415

        out = console(error=options.output is Output.JSON)
        if question or preview.refusals:
            show_plan(out, with_earlier(preview, connection))
        else:
            show_remarks(out, preview)
    if question and not confirmed("Go on?", yes=options.yes):
        console().print("Nothing was changed.")
        return ExitCode.DONE
    return carry_out(options, spec, connection, preview)


def with_earlier(preview: Preview, connection: Connection) -> Preview:
    """Add how long the steps took earlier. The history is read only when a plan is shown."""
    from vgpuctl.operations import with_history  # noqa: PLC0415

    # Decision 0011: one list, and a forecast without it if it cannot be read.
    return with_history(preview, connection.history())


def dry_run_shown(options: RunOptions, spec: CommandSpec, preview: Preview) -> ExitCode:
    from vgpuctl.cli.acting.plans import plan_document, show_plan  # noqa: PLC0415

    if options.output is Output.JSON:
        print_json(plan_document(preview))
    else:
        show_plan(console(), preview)
        if not preview.plan and not preview.refusals:
            console().print_text(spec.nothing_to_do(preview))
        console().print("Nothing was changed.")
    return ExitCode.REFUSED if preview.refusals else ExitCode.DONE


def _nothing(options: RunOptions, spec: CommandSpec, preview: Preview, connection: Connection) -> ExitCode:
    from vgpuctl.engine.ports import Report  # noqa: PLC0415
    from vgpuctl.operations import refused  # noqa: PLC0415

    if preview.refusals:
        raise refused(preview)
    order = _order(spec, connection, preview.fleet)
    if order and order.changes:
        connection.ledger.write(order.changes)
    if options.output is Output.JSON:
        print_json(report_document(Report(wish=preview.wish.name), preview))
    else:
        console().print_text(spec.nothing_to_do(preview))
        _show_order(order)
        _show_missing(preview)
    return ExitCode.DONE


def _order(spec: CommandSpec, connection: Connection, fleet: Fleet) -> SwitchOrder | None:
    """Return the order that this command leaves, in the name by which Kubernetes knows the person."""
    return spec.order(connection.whoami(), fleet) if spec.order else None


def _show_order(order: SwitchOrder | None) -> None:
    """Say how long the shift stays although another one is scheduled."""
    from vgpuctl.basics.moments import moment  # noqa: PLC0415

    if order is None or order.override is None:
        return
    until = order.override.until
    if until is None:
        console().print_text("It stays so until: vgpuctl override clear")
    else:
        now = datetime.now().astimezone()
        console().print_text(f"It stays so until {moment(until, now)}. Then the timetable goes on.")


def carry_out(options: RunOptions, spec: CommandSpec, connection: Connection, preview: Preview) -> ExitCode:
    """Carry out the plan. Even if output fails, the work ends in order, and the exit code reports the result."""
    from vgpuctl.cli.acting.progress import screen  # noqa: PLC0415
    from vgpuctl.operations import Operation, exit_code, nothing_more  # noqa: PLC0415

    order = _order(spec, connection, preview.fleet)
    connection.follow()
    with output.muting():
        with screen(console(), quiet=options.output is Output.JSON) as listener:
            operation = Operation(
                world=connection.world(purpose=f"{connection.whoami()}: {preview.wish.name}"),
                listener=listener,
                timetable=spec.timetable,
                orders=order.changes if order else {},
                outcomes=(lambda report, fleet: order.outcomes(report.hosts, fleet)) if order else nothing_more,
            )
            with _interruptible(operation):
                report = operation.carry_out(spec.wish, spec.former)
        code = exit_code(report, refused=bool(preview.refusals))
        _show_end(options, spec, preview, report, code)
        if code is ExitCode.DONE and options.output is not Output.JSON:
            _show_order(order)
    if complaint_text := output.complaint():
        console(error=True).print_text(complaint_text)
        if options.output is Output.JSON and code is ExitCode.DONE:
            # The document was requested, but it was not written.
            return ExitCode.FAILED
    return code


def _show_end(options: RunOptions, spec: CommandSpec, preview: Preview, report: Report, code: ExitCode) -> None:
    if options.output is Output.JSON:
        print_json(report_document(report, preview) | {"exitCode": int(code)} | spec.more)
        return
    _show_report(report, code, spec, preview)
    _show_missing(preview)


def _show_report(report: Report, code: ExitCode, spec: CommandSpec, preview: Preview) -> None:
    from vgpuctl.operations import unfinished_hosts  # noqa: PLC0415
    from vgpuctl.reporting.causes import Stopped  # noqa: PLC0415
    from vgpuctl.reporting.codes import more_about  # noqa: PLC0415

    out = console(error=code is not ExitCode.DONE)
    for (end, why), hosts in _alike(unfinished_hosts(report)).items():
        out.print_labelled(f"{' '.join(fold(hosts))} {end}{':' if why else ''}", why, "bold red")
    if more := more_about(host.code for host in unfinished_hosts(report) if host.code != Stopped.code):
        out.print_text(more)
    if report.unheard:
        names = " and ".join(report.unheard)
        out.print_text(f"Stopped: {names} did not answer for too long. To go on, run the same command again.")
    elif report.interrupted:
        other_way = ", or switch to another shift" if spec.timetable else ""
        out.print_text(f"Stopped after the steps that were under way. To go on, run the same command again{other_way}.")
    elif code is ExitCode.DONE:
        out.print_text(spec.done_text(preview, report))


def _alike(hosts: Iterable[HostReport]) -> dict[tuple[str, str], list[str]]:
    """Group the hosts with the same end and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        found.setdefault((host.end, host.why), []).append(host.host)
    return found


def _show_missing(preview: Preview) -> None:
    for name in preview.fleet.missing:
        console(error=True).print_text(f"{name} is in profiles.yaml, but vCenter has no VM of this name.")


@contextmanager
def _interruptible(operation: Operation) -> Iterator[None]:
    """Finish only the steps in flight at the first Ctrl-C, and end at once at the second.

    SIGTERM and a closed terminal's SIGHUP count like Ctrl-C.
    """
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt
        operation.interrupt()

    # vSphere: not every task can be cancelled, so the steps in flight are waited for.
    before = {number: signal.signal(number, handle) for number in stop_signals()}
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
