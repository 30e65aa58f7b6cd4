"""vgpuctl schedule …: what comes when, and whether the timetables make sense. Without --live, no server is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import console, print_json, read_all_files, showing_errors, warn_unverified
from vgpuctl.cli.lazy import group
from vgpuctl.cli.options import DebugOption, Output, OutputOption
from vgpuctl.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from vgpuctl.files import Files
    from vgpuctl.model.orders import Orders, Override
    from vgpuctl.model.timetable import Timetable
    from vgpuctl.reporting.coming import Span
    from vgpuctl.settings import Flags

app = group(add_completion=False, help="Show which shift comes when, and check the timetables.")

MOST_DAYS = 366

FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Begin at this time, such as 2026-12-24T18:00. Default: now."),
]
DaysOption = Annotated[int, typer.Option(min=1, max=MOST_DAYS, help="How many days to show.")]
ZoneOption = Annotated[
    str | None, typer.Option(metavar="ZONE", help="Show times in this time zone. Default: the timetable's own.")
]
TimetableOption = Annotated[str | None, typer.Option(metavar="NAME", help="Show only this timetable.")]
LiveOption = Annotated[
    bool, typer.Option("--live", help="Also ask Kubernetes for overrides in force. Default: no server is asked.")
]
SvgOption = Annotated[
    Path | None, typer.Option("--svg", help="Write the picture to this SVG file, too.", dir_okay=False)
]


@app.command("next")
@with_access
def show_next(
    flags: Flags,
    since: FromOption = None,
    days: DaysOption = 7,
    zone: ZoneOption = None,
    timetable: TimetableOption = None,
    live: LiveOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show which shift comes when, the one in force first.

    Examples:

      vgpuctl schedule next
      vgpuctl schedule next --from 2026-12-20 --days 14
      vgpuctl schedule next --live     with the overrides in force
      vgpuctl schedule next --zone America/New_York -o json
    """
    with showing_errors(debug=debug):
        chosen = _Chosen(read_all_files(flags), since, days, zone, timetable)
        if live:
            chosen.orders = _orders(flags)
        if output is Output.JSON:
            print_json(_document(chosen.all_spans()))
        else:
            _print_table(chosen)


@app.command()
@with_access
def preview(
    flags: Flags,
    since: FromOption = None,
    days: DaysOption = 14,
    zone: ZoneOption = None,
    timetable: TimetableOption = None,
    live: LiveOption = False,
    svg: SvgOption = None,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Show the coming days as a picture, a row a day.

    Examples:

      vgpuctl schedule preview
      vgpuctl schedule preview --from 2026-10-20 --days 7
      vgpuctl schedule preview --svg week.svg
    """
    with showing_errors(debug=debug):
        chosen = _Chosen(read_all_files(flags), since, days, zone, timetable)
        if live:
            chosen.orders = _orders(flags)
        if svg is not None:
            _draw(chosen, svg)
        if output is Output.JSON:
            print_json(_document(chosen.all_spans()))
        else:
            _print_pictures(chosen)


@app.command()
@with_access
def check(flags: Flags, output: OutputOption = Output.TABLE, debug: DebugOption = False) -> None:
    """Check the timetables: equal starts, shifts that never come, dates that contradict each other.

    The exit code is 2 if a file cannot be read, 3 if a timetable has an error, and 0 if there are only warnings.

    Examples:

      vgpuctl schedule check
      vgpuctl schedule check -o json
    """
    with showing_errors(debug=debug):
        _check(read_all_files(flags), output)


def _check(files: Files, output: Output) -> None:
    from vgpuctl.cli.showing.findings import findings_document, show_findings  # noqa: PLC0415
    from vgpuctl.model.fleet import Fleet  # noqa: PLC0415
    from vgpuctl.reporting.profiles_check import Compared, Severity  # noqa: PLC0415
    from vgpuctl.reporting.timetable_check import check_timetable  # noqa: PLC0415

    now = datetime.now(UTC)
    findings = [finding for table in files.timetables.values() for finding in check_timetable(table, now)]
    compared = Compared(fleet=Fleet(), catalogue=files.catalogue, timetables=tuple(files.timetables.values()))
    if output is Output.JSON:
        print_json(findings_document(compared, findings))
    else:
        show_findings(console(), compared, findings)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(int(ExitCode.REFUSED))


class _Chosen:
    """The timetables and the time that the options choose."""

    def __init__(self, files: Files, since: str | None, days: int, zone: str | None, timetable: str | None) -> None:
        from vgpuctl.basics.nearest import nearest  # noqa: PLC0415
        from vgpuctl.model.orders import Orders  # noqa: PLC0415

        known = files.timetables
        if timetable is not None and timetable not in known:
            raise UsageError(f"No timetable is called {timetable}{nearest(timetable, known) or '.'}")
        if not known:
            raise UsageError("There are no timetables.", hint="Write one into schedules/, or give --schedules.")
        self.timetables = [table for name, table in known.items() if timetable in {None, name}]
        self.zone, self.days, self.now = _known_zone(zone), days, datetime.now(UTC)
        self._since = since
        self.orders = Orders()

    def zone_of(self, timetable: Timetable) -> str:
        return self.zone or timetable.timezone

    def since(self, timetable: Timetable) -> datetime:
        return _moment(self._since, self.zone_of(timetable)) if self._since else self.now

    def spans(self, timetable: Timetable, *, whole_days: bool = False) -> list[Span]:
        from vgpuctl.planning.due import override_in_force  # noqa: PLC0415
        from vgpuctl.reporting.coming import spans, with_override  # noqa: PLC0415

        since = self.since(timetable)
        if whole_days:
            since = _in_zone(since, self.zone_of(timetable)).replace(hour=0, minute=0, second=0, microsecond=0)
        until = since + timedelta(days=self.days)
        found = list(spans(timetable, since, until))
        order = override_in_force(timetable, self.orders, self.now)
        return with_override(found, _here(order, timetable.timezone), since, until) if order else found

    def all_spans(self) -> list[Span]:
        return [span for timetable in self.timetables for span in self.spans(timetable)]


def _orders(flags: Flags) -> Orders:
    from vgpuctl.kube.order_book import OrderBook  # noqa: PLC0415
    from vgpuctl.settings import kubernetes_settings  # noqa: PLC0415

    return OrderBook.open(kubernetes_settings(flags), warn_unverified).read().orders


def _known_zone(zone: str | None) -> str | None:
    from zoneinfo import available_timezones  # noqa: PLC0415

    from vgpuctl.basics.nearest import nearest  # noqa: PLC0415

    if zone is not None and zone not in (known := available_timezones()):
        raise UsageError(f"There is no time zone {zone}{nearest(zone, known) or '.'}")
    return zone


def _moment(text: str, zone: str) -> datetime:
    """Return a time; without an offset it is a local time of the zone."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    from vgpuctl.basics.bounded import FIRST_YEAR, LAST_YEAR  # noqa: PLC0415

    hint = "Write it as 2026-12-24, 2026-12-24T18:00 or 2026-12-24T17:00:00Z."
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a time.", hint=hint) from None
    if not FIRST_YEAR < found.year < LAST_YEAR:
        raise UsageError(f"{text!r} is not between the years {FIRST_YEAR} and {LAST_YEAR}.", hint=hint)
    return found if found.tzinfo else found.replace(tzinfo=ZoneInfo(zone))


def _in_zone(moment: datetime, zone: str) -> datetime:
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    return moment.astimezone(ZoneInfo(zone))


def _here(order: Override, zone: str) -> Override:
    """Return the order with its times in a zone, as the timetable's own starts are."""
    return replace(order, since=_in_zone(order.since, zone), until=order.until and _in_zone(order.until, zone))


def _document(spans: Sequence[Span]) -> dict[str, Any]:
    items = [
        {
            "timetable": span.timetable,
            "shift": span.shift,
            "start": span.start.isoformat(),
            "end": span.end.isoformat() if span.end else None,
            "begins": span.begins.isoformat() if span.begins else None,
            "why": span.why or None,
        }
        for span in spans
    ]
    return {"apiVersion": "vgpuctl.io/v1", "kind": "Schedule", "items": items}


def _print_table(chosen: _Chosen) -> None:
    from rich.text import Text  # noqa: PLC0415

    from vgpuctl.cli.showing.estate.layout import Row, cell, columns, header_row  # noqa: PLC0415
    from vgpuctl.cli.showing.week import clock_note, early_note, in_words  # noqa: PLC0415
    from vgpuctl.reporting.coming import clock_changes  # noqa: PLC0415

    out = console()
    rows = []
    for timetable in chosen.timetables:
        zone = chosen.zone_of(timetable)
        for span in chosen.spans(timetable):
            start, end = _in_zone(span.start, zone), span.end and _in_zone(span.end, zone)
            changes = [clock_note(change) for change in clock_changes(zone, start, end or start)]
            notes = [in_words(span, chosen.now), span.why, early_note(span), *changes]
            shown = (timetable.name, span.shift, _day_and_time(start), _day_and_time(end) if end else "")
            rows.append(Row(tuple(map(cell, shown)), Text(" · ".join(filter(None, notes)))))
    for line in columns(header_row("TIMETABLE", "SHIFT", "FROM", "UNTIL"), rows, out.width):
        out.print(line)
    zones = dict.fromkeys(map(chosen.zone_of, chosen.timetables))
    out.print(f"Times are those of {', '.join(zones)}.", style="dim")


def _day_and_time(moment: datetime) -> str:
    return f"{moment:%a} {moment.day:>2} {moment:%b %H:%M}"


def _print_pictures(chosen: _Chosen) -> None:
    from rich.text import Text  # noqa: PLC0415

    from vgpuctl.cli.showing.week import day_rows, glyphs, in_words, picture  # noqa: PLC0415

    out = console()
    for number, timetable in enumerate(chosen.timetables):
        zone, spans = chosen.zone_of(timetable), chosen.spans(timetable, whole_days=True)
        marks = glyphs(timetable)
        head = Text(timetable.name, "bold")
        for shift, (glyph, style) in marks.items():
            head.append(" · ", "dim").append(glyph, style).append(f" {shift}")
        coming = next((span for span in spans if span.start > chosen.now), None)
        if coming:
            start = _in_zone(coming.start, zone)
            head.append(f" · next: {coming.shift} {start:%a %H:%M} ({in_words(coming, chosen.now)})")
        if number:
            out.print()
        out.print(head)
        rows = day_rows(timetable, spans, zone, chosen.since(timetable), chosen.days)
        for line in picture(rows, zone, marks):
            out.print(line)


def _draw(chosen: _Chosen, path: Path) -> None:
    from vgpuctl.cli.showing.svg_parts import write_picture  # noqa: PLC0415
    from vgpuctl.cli.showing.week import day_rows  # noqa: PLC0415
    from vgpuctl.cli.showing.week_svg import week_svg  # noqa: PLC0415

    if len(chosen.timetables) > 1:
        raise UsageError("--svg draws only one timetable.", hint="Choose one with --timetable NAME.")
    (timetable,) = chosen.timetables
    zone, spans = chosen.zone_of(timetable), chosen.spans(timetable, whole_days=True)
    rows = day_rows(timetable, spans, zone, chosen.since(timetable), chosen.days)
    headline = f"Timetable {timetable.name}, {zone}"
    write_picture(path, week_svg(headline, rows, list(timetable.shifts)))
