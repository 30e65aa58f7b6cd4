"""The coming shifts as an SVG picture: a row a day, a bar a shift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from vgpuctl.cli.showing.svg_parts import PLAIN, STYLE, colour_rules, svg_text
from vgpuctl.cli.showing.week import CELLS, DayRow

WIDTH, MARGIN, LEFT, RIGHT = 960, 24, 130, 180
TOP, ROW, BAR = 84, 24, 16
CELL = (WIDTH - LEFT - RIGHT) / CELLS
#: Light and dark of each shift, in the order in which they come.
FILLS = (("#e9b949", "#d9a52e"), ("#6ea8e0", "#3f7fc1"), ("#6fbf73", "#3f9a49"), ("#c08adb", "#9a5fbd"))


def week_svg(headline: str, rows: Sequence[DayRow], shifts: Sequence[str]) -> str:
    """Return the SVG, written directly: it fetches nothing and runs nothing."""
    classes = {shift: f"shift-{number % len(FILLS)}" for number, shift in enumerate(shifts)}
    fills = {f".shift-{number}": ("fill", *fill) for number, fill in enumerate(FILLS)}
    inside = {".in": ("fill", "#10151a", "#10151a")}
    bottom = TOP + ROW * len(rows)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + MARGIN}" role="img">',
        f"<title>{svg_text(headline)}</title>",
        f"<style>\n{STYLE}{colour_rules(PLAIN | fills | inside)}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{bottom + MARGIN}"/>',
        f'<text class="head" x="{MARGIN}" y="36">{svg_text(headline)}</text>',
        *_grid(bottom),
        *(line for number, row in enumerate(rows) for line in _row(row, TOP + ROW * number, classes)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _grid(bottom: int) -> Iterator[str]:
    for hour in range(0, 25, 3):
        x = LEFT + 2 * hour * CELL
        yield f'<line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="quiet" x="{x:.1f}" y="{TOP - 16}" text-anchor="middle">{hour:02}</text>'


def _row(row: DayRow, y: int, classes: dict[str, str]) -> Iterator[str]:
    yield f'<text x="{MARGIN}" y="{y + 13}">{row.day:%a %d %b}</text>'
    at = 0
    for shift, cells in groupby(row.cells):
        number = len(list(cells))
        x, width = LEFT + at * CELL, number * CELL - 1
        at += number
        if not shift:
            continue
        place = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="3"'
        yield f'<rect class="{classes[shift]}" {place}><title>{svg_text(shift)}</title></rect>'
        if width > 8 * len(shift):
            middle = x + width / 2
            yield f'<text class="in" x="{middle:.1f}" y="{y + 12}" text-anchor="middle">{svg_text(shift)}</text>'
    if row.notes:
        note = svg_text("; ".join(row.notes))
        yield f'<text class="quiet" x="{WIDTH - RIGHT + 12}" y="{y + 13}">{note}</text>'
