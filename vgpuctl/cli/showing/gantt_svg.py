"""The same bars as an SVG picture, readable on light and dark backgrounds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from vgpuctl.basics.durations import format_duration
from vgpuctl.cli.sanitize import one_line
from vgpuctl.cli.showing.gantt import Bar, Lane, lanes, ticks
from vgpuctl.cli.showing.svg_parts import PLAIN, colour_rules, svg_text
from vgpuctl.cli.showing.svg_parts import STYLE as PLAIN_STYLE
from vgpuctl.model.journal import Entry
from vgpuctl.planning.steps import kind_named

WIDTH, MARGIN, LETTER = 960, 24, 7.3
LETTERS = int((WIDTH - 2 * MARGIN) / LETTER)
ROW, BAR = 26, 18
TOP = 84
LEAST_NAMES = 60
#: The colours of each shape, on light and dark backgrounds.
COLOURS = PLAIN | {
    ".drain": ("fill", "#e9b949", "#d9a52e"),
    ".suspend": ("fill", "#6ea8e0", "#3f7fc1"),
    ".shut-down": ("fill", "#6ea8e0", "#3f7fc1"),
    ".attach": ("fill", "#c08adb", "#9a5fbd"),
    ".power-on": ("fill", "#6fbf73", "#3f9a49"),
    ".wait-back": ("fill", "#62c4c3", "#2f9897"),
    ".scale": ("fill", "#c08adb", "#9a5fbd"),
    ".mark": ("fill", "#b5bcc4", "#6b7683"),
    ".decides": ("stroke", "#1f2933", "#e6eaee"),
    ".open": ("stroke", "#c62828", "#ff8a80"),
    ".in": ("fill", "#10151a", "#10151a"),
}
STYLE = f"""\
{PLAIN_STYLE}\
.in {{ font-size: 11px }}
.decides {{ stroke-width: 2 }}
.open {{ stroke-width: 2; stroke-dasharray: 4 3 }}
"""


def svg(entry: Entry, headline: str, remarks: list[str]) -> str:
    """Return the SVG, written directly: it fetches nothing and runs nothing."""
    found = list(_rows(lanes(entry)))
    remark_lines = [line for remark in remarks for line in textwrap.wrap(one_line(remark), LETTERS)]
    names = (row if isinstance(row, str) else row.subject for row in found)
    left = MARGIN + max(LEAST_NAMES, *(len(name) * LETTER for name in names), 0) + 12
    scale = (WIDTH - MARGIN - left) / max(entry.seconds, 0.001)
    bottom = TOP + ROW * len(found)
    height = bottom + 22 * len(remark_lines) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{svg_text(headline)}</title>",
        f"<style>\n{STYLE}{colour_rules(COLOURS)}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        f'<text class="head" x="{MARGIN}" y="36">{svg_text(headline)}</text>',
        *_grid(entry, left, scale, bottom),
        *(line for i, row in enumerate(found) for line in _row(row, left, scale, TOP + ROW * i)),
        *(
            f'<text x="{MARGIN}" y="{bottom + 28 + 22 * i}">{svg_text(line)}</text>'
            for i, line in enumerate(remark_lines)
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _remarks(lines: list[str], top: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f'<text x="{MARGIN}" y="{top + 22 * number}">{svg_text(line)}</text>'


def _grid(entry: Entry, left: float, scale: float, bottom: int) -> Iterator[str]:
    for tick in ticks(entry.seconds, 9):
        x = left + tick * scale
        yield f'<line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="quiet" x="{x:.1f}" y="{TOP - 16}">{format_duration(tick)}</text>'


def _rows(found: list[Lane]) -> Iterator[str | Lane]:
    """Yield the lanes, under their hosts' names if there are several hosts."""
    several, host = len({lane.host for lane in found}) > 1, None
    for lane in found:
        if several and lane.host != host:
            host = lane.host
            yield host
        yield lane


def _row(row: str | Lane, left: float, scale: float, y: int) -> Iterator[str]:
    if isinstance(row, Lane):
        yield from _lane(row, left, scale, y)
    else:
        yield f'<text class="quiet" x="{MARGIN}" y="{y + 14}">{svg_text(row)}</text>'


def _lane(lane: Lane, left: float, scale: float, y: int) -> Iterator[str]:
    yield f'<text x="{MARGIN}" y="{y + 14}">{svg_text(lane.subject)}<title>{svg_text(lane.host)}</title></text>'
    for bar in lane.bars:
        yield from _bar(bar, left + bar.from_s * scale, max((bar.to_s - bar.from_s) * scale, 1.0), y)


def _bar(bar: Bar, x: float, width: float, y: int) -> Iterator[str]:
    classes = f"{kind_named(bar.step.kind).look.value}{' decides' * (bar.decides and width > 3)}{' open' * bar.open}"
    place = f'x="{x:.1f}" y="{y}" width="{max(width - 1, 1):.1f}" height="{BAR}" rx="3"'
    yield f'<rect class="{classes}" {place}><title>{svg_text(_tooltip(bar))}</title></rect>'
    if width > len(bar.word) * LETTER + 6:
        yield f'<text class="in" x="{x + width / 2:.1f}" y="{y + 13}" text-anchor="middle">{svg_text(bar.word)}</text>'


def _tooltip(bar: Bar) -> str:
    took = "no end seen" if bar.step.ended_s is None else format_duration(bar.to_s - bar.from_s)
    took += ", given up" if bar.step.given_up else ""
    held = f", held for {format_duration(bar.step.held_s)}: {bar.step.held_by}" if bar.step.held_by else ""
    return f"{bar.step.subject}: {bar.step.what}, from {format_duration(bar.from_s)}, {took}{held}"
