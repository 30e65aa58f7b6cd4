"""Columns of text as wide as their contents, for any window width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.style import Style
from rich.text import Text

from vgpuctl.cli.sanitize import one_line

GAP = 2
LEAST_NOTE = 24
INDENT = 4
_GLUE = "\u00a0"


def cell(text: str, style: str = "") -> Text:
    return Text(one_line(text), style)


@dataclass(frozen=True)
class Row:
    """One row of a table. `note`: the text after the columns, folded if the room is too small."""

    cells: tuple[Text, ...]
    note: Text = field(default_factory=Text)


def header_row(*names: str, note: str = "") -> Row:
    return Row(tuple(Text(name, "dim") for name in names), Text(note, "dim"))


def columns(header: Row, rows: Sequence[Row], width: int) -> Iterator[Text]:
    """Yield columns side by side if they fit; otherwise each row becomes a paragraph."""
    everything = [header, *rows]
    widths = [max(each.cells[i].cell_len for each in everything) for i in range(len(header.cells))]
    room = width - sum(widths) - GAP * len(widths)
    for each in everything if room >= -GAP else ():
        yield from _lines(each, widths, room, width)
    names = [name.plain.lower() for name in header.cells]
    for each in rows if room < -GAP else ():
        parts = [_named(part.plain, name) for part, name in zip(each.cells, names, strict=True)]
        yield from paragraph(" · ".join(filter(None, [*parts, each.note.plain])), width)


def _named(text: str, column: str) -> str:
    """Return a cell's text with its column's name if it is a number, which says nothing alone."""
    return f"{text} {column}" if text.isdecimal() else text.removeprefix("–")


def _lines(each: Row, widths: Sequence[int], room: int, width: int) -> Iterator[Text]:
    line = Text()
    for cell, wide in zip(each.cells, widths, strict=True):
        line.append_text(cell).append(" " * (wide - cell.cell_len + GAP))
    style, beside = each.note.style, each.note.cell_len <= room or room >= LEAST_NOTE
    first, *rest = _folded(each.note.plain, room if beside else width - INDENT) or [""]
    if not beside:
        first, rest = "", [first, *rest]
    line.append(first, style).rstrip()
    yield line
    yield from (_set_in(part, width - room if beside else INDENT, style) for part in rest)


def _set_in(text: str, indent: int, style: str | Style) -> Text:
    return Text(" " * indent).append(text, style)


def paragraph(text: str, width: int, style: str = "") -> Iterator[Text]:
    """Yield a paragraph's lines, indented after the first."""
    text = one_line(text)
    first, *rest = _folded(text, width - INDENT) or [""]
    whole = len(text) <= width
    yield Text(text.replace(_GLUE, " ") if whole else first, style)
    yield from (_set_in(part, INDENT, style) for part in (() if whole else rest))


def unbroken(text: str, width: int) -> str:
    """Keep a text on one line, if a line is wide enough for all of it."""
    return text.replace(" ", _GLUE) if len(text) + INDENT <= width else text


def _folded(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, max(width, 1), break_on_hyphens=False, break_long_words=False)
    return [line.replace(_GLUE, " ") for line in lines]
