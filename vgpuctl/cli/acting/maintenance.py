"""vgpuctl maintenance enter, vgpuctl maintenance exit"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.act import CommandSpec, RunOptions, carry_out, dry_run_shown, with_earlier
from vgpuctl.cli.acting.ordering import (
    HostsArgument,
    ReasonOption,
    checked_reason,
    hosts_meant,
    order_book,
    this_second,
)
from vgpuctl.cli.common import confirmed, connected, console, print_json, read_all_files, showing_errors
from vgpuctl.cli.lazy import group
from vgpuctl.cli.options import (
    DebugOption,
    DryRunOption,
    ForOption,
    IncludeHeldOption,
    Output,
    OutputOption,
    UntilOption,
)
from vgpuctl.cli.selection import end_of_order
from vgpuctl.cli.times import ends_by
from vgpuctl.model.errors import ExitCode, PassingError, RefusedError, UsageError

if TYPE_CHECKING:
    from vgpuctl.engine.ports import Report
    from vgpuctl.files import Files
    from vgpuctl.model.fleet import Fleet
    from vgpuctl.model.orders import Maintenance
    from vgpuctl.observe.wiring import Connection
    from vgpuctl.operations import Preview
    from vgpuctl.settings import Flags

app = group(
    add_completion=False,
    help="Hold hosts before a patch, with their sleepers really off; give them back afterwards.",
)

HELD = "The hosts are held all the same, but not all suspended states are discarded."

AllOption = Annotated[bool, typer.Option("--all", help="All hosts.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before frozen pods are lost.")]


@app.command()
@with_access
def enter(
    flags: Flags,
    hosts: HostsArgument = None,
    every: AllOption = False,
    lasting: ForOption = None,
    until: UntilOption = None,
    reason: ReasonOption = "",
    dry_run: DryRunOption = False,
    include_held: IncludeHeldOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Hold hosts for a patch: no shift moves anything there until `exit`, and suspended workers become really off.

    A suspended VM may not resume after a patch or an update of the vGPU manager, so its state is discarded. Workers
    that run are left alone, and named. After a failure, run the same command again.

    Examples:

      vgpuctl maintenance enter esx-1 --dry-run
      vgpuctl maintenance enter 'esx-*' --until 18:00 --reason 'ESXi update'
    """
    options = RunOptions(flags=flags, output=output, dry_run=dry_run, yes=yes, debug=debug)
    with showing_errors(debug=debug):
        now = this_second()
        patterns = _patterns(hosts, every=every)
        wanted = _Wanted(patterns, now, end_of_order(until, lasting, now), checked_reason(reason), include_held)
        raise typer.Exit(int(_enter(options, wanted)))


@app.command("exit")
@with_access
def leave(
    flags: Flags,
    hosts: HostsArgument = None,
    every: AllOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Give hosts back: the daemon puts the shift that is due in force there again. vCenter is not asked.

    Examples:

      vgpuctl maintenance exit esx-1
      vgpuctl maintenance exit --all
    """
    with showing_errors(debug=debug):
        _exit(flags, _patterns(hosts, every=every), output)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the command line asked for. `patterns`: empty for all hosts."""

    patterns: tuple[str, ...]
    now: datetime
    ends: datetime | None
    reason: str
    include_held: bool


def _patterns(hosts: list[str] | None, *, every: bool) -> tuple[str, ...]:
    if bool(hosts) is every:
        raise UsageError("Name hosts, or give --all." if not hosts else "Name hosts, or give --all, but not both.")
    return tuple(hosts or ())


def _enter(options: RunOptions, wanted: _Wanted) -> ExitCode:
    from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

    files = read_all_files(options.flags)
    with connected(options.flags, files, ObservationScope()) as connection:
        fleet = connection.fleet()
        if unheard := fleet.unheard():
            raise PassingError(f"{unheard}. Nothing was changed.")
        known = {host.name for host in fleet.hosts.values() if host.cards or fleet.on_host(host.name)}
        listed = "Hosts with cards or workers"
        hosts = hosts_meant(wanted.patterns or ("*",), known, "a host with cards or workers of ours", listed)
        return _Entrance(options, wanted, files, connection, hosts).go()


@dataclass(frozen=True, slots=True)
class _Entrance:
    """One `maintenance enter`, over an open connection."""

    options: RunOptions
    wanted: _Wanted
    files: Files
    connection: Connection
    hosts: list[str]

    def go(self) -> ExitCode:
        """Ask where pods are lost; hold the hosts; then discard the suspended states."""
        from vgpuctl.operations import look_ahead  # noqa: PLC0415
        from vgpuctl.reporting.maintenance import pods_given_up  # noqa: PLC0415

        fleet = self.connection.fleet()
        lost = pods_given_up(fleet, self.hosts)
        spec = self._spec(frozenset(pod.uid for pod in lost))
        preview = look_ahead(fleet, spec.wish(fleet))
        if self.options.dry_run:
            return dry_run_shown(self.options, spec, with_earlier(preview, self.connection))
        if (lost and not self.options.yes) or preview.refusals:
            self._show(preview)
        if lost and not confirmed("Go on? These pods are lost.", yes=self.options.yes):
            console().print("Nothing was changed.")
            return ExitCode.DONE
        # Held first: a shift that begins now would put workers to sleep that this look did not see.
        spec.more["maintenance"] = self._hold()
        return self._discard(spec, preview)

    def _spec(self, given_up: frozenset[str]) -> CommandSpec:
        from vgpuctl.planning.wishes import maintenance_wish  # noqa: PLC0415

        spec = CommandSpec(
            wish=lambda fleet: maintenance_wish(fleet, self.files.catalogue, self.hosts, given_up),
            # A discarded state cannot be had back, so there is no way back either.
            former=None,
            nothing_to_do=lambda preview: self._end("No worker is suspended there.", preview.fleet),
            done_text=self._done,
        )
        return spec.including_held() if self.wanted.include_held else spec

    def _show(self, preview: Preview) -> None:
        from vgpuctl.cli.acting.plans import show_plan  # noqa: PLC0415

        out = console(error=self.options.output is Output.JSON)
        show_plan(out, with_earlier(preview, self.connection))

    def _hold(self) -> list[dict[str, Any]]:
        from vgpuctl.model.ledger import maintenance_key  # noqa: PLC0415
        from vgpuctl.model.orders import Maintenance  # noqa: PLC0415
        from vgpuctl.reporting.orders import order_document  # noqa: PLC0415

        book, now, ends, why = self.connection.order_book(), self.wanted.now, self.wanted.ends, self.wanted.reason
        who = book.who()
        orders = {host: Maintenance(who=who, since=now, until=ends, reason=why, host=host) for host in self.hosts}
        book.write({maintenance_key(host): order for host, order in orders.items()})
        if self.options.output is Output.TABLE:
            self._say_held(orders[self.hosts[0]])
        return [order_document(order) for order in orders.values()]

    def _say_held(self, order: Maintenance) -> None:
        from vgpuctl.basics.phrases import folded_names  # noqa: PLC0415

        verb = "are" if len(self.hosts) > 1 else "is"
        text = f"{folded_names(self.hosts)} {verb} under maintenance {ends_by(order, self.wanted.now)}."
        console().print_text(f"{text} No shift moves anything there.")

    def _discard(self, spec: CommandSpec, preview: Preview) -> ExitCode:
        if preview.refusals and not preview.plan:
            raise _refused(preview)
        if preview.plan:
            code = carry_out(self.options, spec, self.connection, preview)
            if code is not ExitCode.DONE:
                console(error=True).print_text(f"{HELD} Then run the same command again.")
            return code
        if self.options.output is Output.JSON:
            print_json({"apiVersion": "vgpuctl.io/v1", "kind": "Report", "exitCode": 0, **spec.more})
        else:
            console().print_text(spec.nothing_to_do(preview))
        return ExitCode.DONE

    def _done(self, preview: Preview, _report: Report) -> str:
        from vgpuctl.basics.phrases import count  # noqa: PLC0415

        number = len({step.subject for step in preview.plan})
        verb = "is" if number == 1 else "are"
        return self._end(f"{count(number, 'sleeping worker')} {verb} really off now.", self.connection.fleet())

    def _end(self, what: str, fleet: Fleet) -> str:
        from vgpuctl.reporting.maintenance import in_the_way  # noqa: PLC0415

        after = f"Afterwards: vgpuctl maintenance exit {' '.join(self.wanted.patterns) or '--all'}"
        return "\n".join([what, *in_the_way(fleet, self.hosts), after])


def _refused(preview: Preview) -> RefusedError:
    from vgpuctl.reporting.codes import more_about  # noqa: PLC0415

    lines = [refusal.message for refusal in preview.refusals]
    hints = dict.fromkeys(refusal.hint for refusal in preview.refusals)
    end = f"{HELD} Then run the same command again. {more_about(refusal.code for refusal in preview.refusals)}"
    return RefusedError("\n".join(lines), hint="\n".join([*hints, end]))


def _exit(flags: Flags, patterns: tuple[str, ...], output: Output) -> None:
    from vgpuctl.basics.phrases import folded_names  # noqa: PLC0415
    from vgpuctl.model.ledger import maintenance_key  # noqa: PLC0415
    from vgpuctl.reporting.orders import maintenance_in_force, order_document  # noqa: PLC0415

    now, book = this_second(), order_book(flags)
    orders = book.read().orders
    held = {order.host: order for order in maintenance_in_force(orders, now)}
    if not held:
        raise UsageError("No host is under maintenance.", hint="vgpuctl status shows the orders in force.")
    chosen = hosts_meant(patterns or ("*",), held, "under maintenance", "Under maintenance")
    book.write({maintenance_key(host): None for host in chosen})
    if output is Output.JSON:
        items = [order_document(held[host]) for host in chosen]
        print_json({"apiVersion": "vgpuctl.io/v1", "kind": "MaintenanceList", "items": items})
        return
    pause = orders.paused(now)
    soon = f"after the pause {ends_by(pause, now)}" if pause else "within seconds"
    verb = "are" if len(chosen) > 1 else "is"
    console().print_text(
        f"{folded_names(chosen)} {verb} no longer under maintenance. The daemon puts the shift that is due in force "
        f"there {soon}."
    )
