"""vgpuctl history: the journal's entries"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import console, print_json, showing_errors, warn_unverified
from vgpuctl.cli.lazy import group
from vgpuctl.cli.options import DebugOption, HistoryOutput, HistoryOutputOption
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.kube.journal import History
    from vgpuctl.model.journal import Entry
    from vgpuctl.settings import Flags

app = group(add_completion=False, invoke_without_command=True)

LimitOption = Annotated[int, typer.Option(metavar="N", min=1, help="Show at most the last N switches.")]
IdsArgument = Annotated[
    list[str], typer.Argument(metavar="ID", help="An ID from `vgpuctl history`, or last.", show_default=False)
]
SvgOption = Annotated[
    Path | None,
    typer.Option("--svg", help="Also write an SVG picture to this file.", show_default=False, dir_okay=False),
]


@app.callback()
@with_access
def overview(
    called: typer.Context,
    flags: Flags,
    limit: LimitOption = 20,
    output: HistoryOutputOption = HistoryOutput.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show earlier switches: when, how long, each step, and what held them up.

    The journal is kept in Kubernetes, so every machine shows the same. vCenter is not asked.

    Examples:

      vgpuctl history
      vgpuctl history show last
    """
    with showing_errors(debug=debug):
        if called.invoked_subcommand is None:
            history = _past(flags)
            _list(list(history.entries[-limit:]), output)
            _warn_unreadable(history)
        elif any(str(source).endswith("COMMANDLINE") for source in map(called.get_parameter_source, called.params)):
            raise UsageError(
                "Options come after the command's name.", hint="For example: vgpuctl history show last -o json"
            )


@app.command()
@with_access
def show(
    flags: Flags,
    ids: IdsArgument,
    svg: SvgOption = None,
    output: HistoryOutputOption = HistoryOutput.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show the steps of a switch over time, the longest way through them, and what held them up.

    Examples:

      vgpuctl history show last
      vgpuctl history show 41 -o wide         add a table of all steps
      vgpuctl history show 41 --svg 41.svg    write a picture
    """
    with showing_errors(debug=debug):
        if svg is not None and len(ids) > 1:
            raise UsageError("--svg draws only one switch.", hint="Give one ID: vgpuctl history show last --svg FILE")
        history = _past(flags)
        chosen = [_chosen(history, each) for each in ids]
        if svg is not None:
            _draw(chosen[0], svg)
        _show(chosen, output)


def _past(flags: Flags) -> History:
    from vgpuctl.observe.wiring import journal_of  # noqa: PLC0415
    from vgpuctl.settings import kubernetes_settings  # noqa: PLC0415

    return journal_of(kubernetes_settings(flags), warn_unverified).read()


def _warn_unreadable(history: History) -> None:
    """Report unreadable entries on the error output, so that output for programs stays one document."""
    if not history.unreadable:
        return
    from vgpuctl.basics.phrases import count, folded_names  # noqa: PLC0415

    number, why = len(history.unreadable), history.unreadable[0].why
    names = folded_names(each.name for each in history.unreadable)
    more = "" if number == 1 else "the first: "
    text = f"{count(number, 'ConfigMap')} of the history cannot be read, and {'is' if number == 1 else 'are'} left out"
    console(error=True).print_text(f"{text}: {names} ({more}{why}).", style="yellow")


def _chosen(history: History, wanted: str) -> Entry:
    entries = history.entries
    found = entries[-1:] if wanted == "last" else [entry for entry in entries if str(entry.number) == wanted]
    if not found and (why := history.why_unreadable(wanted)):
        raise UsageError(
            f"Switch {wanted} cannot be read: {why}.",
            hint=f"kubectl get configmap -A -o yaml --field-selector metadata.name=vgpuctl-history-{wanted} shows its "
            "contents. Nothing depends on it, so you may delete it.",
        )
    if not found:
        known = (
            f"Known: {entries[0].number} to {entries[-1].number}, or last." if entries else "There are no switches yet."
        )
        raise UsageError(f"There is no switch {wanted} in the history.", hint=f"{known} The oldest are deleted.")
    return found[0]


def _list(entries: list[Entry], output: HistoryOutput) -> None:
    if output in {HistoryOutput.JSON, HistoryOutput.YAML}:
        _print(_document(entries, several=True), output)
        return
    from vgpuctl.cli.showing.estate.layout import columns  # noqa: PLC0415
    from vgpuctl.cli.showing.past import overview  # noqa: PLC0415

    out = console()
    if not entries:
        out.print("There are no switches yet.")
    for line in columns(*overview(entries[::-1], _now()), out.width) if entries else ():
        out.print(line)


def _show(entries: list[Entry], output: HistoryOutput) -> None:
    if output in {HistoryOutput.JSON, HistoryOutput.YAML}:
        _print(_document(entries, several=len(entries) > 1), output)
        return
    from rich.text import Text  # noqa: PLC0415

    from vgpuctl.cli.sanitize import one_line  # noqa: PLC0415
    from vgpuctl.cli.showing.estate.layout import columns, paragraph  # noqa: PLC0415
    from vgpuctl.cli.showing.gantt import gantt  # noqa: PLC0415
    from vgpuctl.cli.showing.past import headline, remarks, steps_table  # noqa: PLC0415

    out = console()
    for number, entry in enumerate(entries):
        out.print(f"{chr(10) if number else ''}{one_line(headline(entry, _now()))}", style="bold")
        lines = [*gantt(entry, out.width), *(line for text in remarks(entry) for line in paragraph(text, out.width))]
        if output is HistoryOutput.WIDE:
            lines += [Text(), *columns(*steps_table(entry), out.width)]
        for line in lines:
            out.print(line)


def _print(document: dict[str, Any], output: HistoryOutput) -> None:
    if output is HistoryOutput.JSON:
        print_json(document)
        return
    from vgpuctl.cli.documents import as_yaml  # noqa: PLC0415

    typer.echo(as_yaml(document))


def _document(entries: list[Entry], *, several: bool) -> dict[str, Any]:
    """Return one entry as a document, several as a list, as kubectl does."""
    from vgpuctl.model.journal import document  # noqa: PLC0415

    found = [document(entry) for entry in entries]
    return {"apiVersion": "vgpuctl.io/v1", "kind": "HistoryList", "items": found} if several else found[0]


def _now() -> datetime:
    return datetime.now().astimezone()


def _draw(entry: Entry, path: Path) -> None:
    from vgpuctl.cli.showing.gantt_svg import svg  # noqa: PLC0415
    from vgpuctl.cli.showing.past import headline, remarks  # noqa: PLC0415
    from vgpuctl.cli.showing.svg_parts import write_picture  # noqa: PLC0415

    write_picture(path, svg(entry, headline(entry, _now()), remarks(entry)))
