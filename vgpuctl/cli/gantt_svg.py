"""The same bars as a picture of its own, readable on light and dark paper."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape

from vgpuctl.cli.gantt import Bar, Lane, lanes, ticks
from vgpuctl.cli.harmless import one_line
from vgpuctl.cli.words import seconds
from vgpuctl.model.journal import Entry

WIDTH, MARGIN, LETTER = 960, 24, 7.3
LETTERS = int((WIDTH - 2 * MARGIN) / LETTER)
ROW, BAR = 26, 18
TOP = 84
LEAST_NAMES = 60
#: Kind → on light paper, on dark paper. What is not here is a mark.
COLOURS = {
    "drain": ("#e9b949", "#d9a52e"),
    "suspend": ("#6ea8e0", "#3f7fc1"),
    "shut-down": ("#6ea8e0", "#3f7fc1"),
    "attach": ("#c08adb", "#9a5fbd"),
    "power-on": ("#6fbf73", "#3f9a49"),
    "wait-back": ("#62c4c3", "#2f9897"),
    "mark": ("#b5bcc4", "#6b7683"),
}
_CLASSES = {"Drain": "drain", "Suspend": "suspend", "ShutDown": "shut-down", "Attach": "attach"}
_CLASSES |= {"PowerOn": "power-on", "WaitBack": "wait-back"}
STYLE = """\
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2933; --quiet: #66717d; --grid: #e3e7eb; }
:root { --trouble: #c62828 }
text { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink) }
.paper { fill: var(--paper) }
.grid { stroke: var(--grid) }
.quiet { fill: var(--quiet) }
.head { font-weight: 700; font-size: 15px }
.in { fill: #10151a; font-size: 11px }
.decides { stroke: var(--ink); stroke-width: 2 }
.open { stroke: var(--trouble); stroke-width: 2; stroke-dasharray: 4 3 }
"""


def svg(entry: Entry, headline: str, remarks: list[str]) -> str:
    """Hand-drawn XML: nothing is fetched, nothing runs."""
    found = lanes(entry)
    told = [line for remark in remarks for line in textwrap.wrap(one_line(remark), LETTERS)]
    left = MARGIN + max(LEAST_NAMES, *(len(lane.worker) * LETTER for lane in found), 0) + 12
    scale = (WIDTH - MARGIN - left) / max(entry.seconds, 0.001)
    bottom = TOP + ROW * len(found)
    height = bottom + 22 * len(told) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{_text(headline)}</title>",
        f"<style>\n{STYLE}{_colours()}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        f'<text class="head" x="{MARGIN}" y="36">{_text(headline)}</text>',
        *_grid(entry, left, scale, bottom),
        *(line for i, lane in enumerate(found) for line in _lane(lane, left, scale, TOP + ROW * i)),
        *(f'<text x="{MARGIN}" y="{bottom + 28 + 22 * i}">{_text(line)}</text>' for i, line in enumerate(told)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _text(words: str) -> str:
    return escape(one_line(words), {'"': "&quot;"})


def _colours() -> str:
    light = " ".join(f".{kind} {{ fill: {colour} }}" for kind, (colour, _) in COLOURS.items())
    dark = " ".join(f".{kind} {{ fill: {colour} }}" for kind, (_, colour) in COLOURS.items())
    ink = "--paper: #14181d; --ink: #e6eaee; --quiet: #98a3ae; --grid: #2b323a; --trouble: #ff8a80"
    return f"{light}\n@media (prefers-color-scheme: dark) {{ :root {{ {ink} }} {dark} }}\n"


def _grid(entry: Entry, left: float, scale: float, bottom: int) -> Iterator[str]:
    for tick in ticks(entry.seconds, 9):
        x = left + tick * scale
        yield f'<line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="quiet" x="{x:.1f}" y="{TOP - 16}">{seconds(tick)}</text>'


def _lane(lane: Lane, left: float, scale: float, y: int) -> Iterator[str]:
    yield f'<text x="{MARGIN}" y="{y + 14}">{_text(lane.worker)}<title>{_text(lane.host)}</title></text>'
    for bar in lane.bars:
        yield from _bar(bar, left + bar.from_s * scale, max((bar.to_s - bar.from_s) * scale, 1.0), y)


def _bar(bar: Bar, x: float, width: float, y: int) -> Iterator[str]:
    looks = f"{_CLASSES.get(bar.step.kind, 'mark')}{' decides' * (bar.decides and width > 3)}{' open' * bar.open}"
    place = f'x="{x:.1f}" y="{y}" width="{max(width - 1, 1):.1f}" height="{BAR}" rx="3"'
    yield f'<rect class="{looks}" {place}><title>{_text(_told(bar))}</title></rect>'
    if width > len(bar.word) * LETTER + 6:
        yield f'<text class="in" x="{x + width / 2:.1f}" y="{y + 13}" text-anchor="middle">{_text(bar.word)}</text>'


def _told(bar: Bar) -> str:
    took = "no end seen" if bar.step.ended_s is None else seconds(bar.to_s - bar.from_s)
    took += ", given up" if bar.step.given_up else ""
    held = f", held for {seconds(bar.step.held_s)}: {bar.step.held_by}" if bar.step.held_by else ""
    return f"{bar.step.worker}: {bar.step.what}, from {seconds(bar.from_s)}, {took}{held}"
