"""What the commands print on: nothing that comes from a server is taken for markup, for a terminal's commands, or for a
line of ours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from vgpuctl.cli.sanitize import one_line, sanitize


class Paper(Console):
    """NO_COLOR and terminals without colour are honoured by rich; a pipe gets plain text."""

    def __init__(self, *, error: bool = False) -> None:
        super().__init__(stderr=error, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render(self, *args: Any, **options: Any) -> Iterable[Segment]:
        """All that rich prints comes by here, tables redrawn in place too. Its own commands to the terminal pass."""
        for segment in super().render(*args, **options):
            yield segment if segment.control else Segment(sanitize(segment.text), segment.style)

    def render_str(self, text: str, **options: Any) -> Text:
        """Before rich measures it, and takes out of it what it does not print."""
        return super().render_str(sanitize(text), **options)

    def say(self, label: str, text: str, style: str = "bold") -> None:
        """`Error: …`, the label in its style. Lines after the first are set in: none passes for another label."""
        label = one_line(label)
        said = Text(self._folded(_set_in(f"{label} {sanitize(text)}")))
        said.stylize(style, 0, len(label))
        self.print(said)

    def tell(self, text: str, style: str = "") -> None:
        """A sentence, or several lines of them."""
        self.print(self._folded(text), style=style)

    def _folded(self, text: str) -> str:
        """On a terminal no word is split, and lines after the first are set in; elsewhere a line stays a line."""
        return "\n".join(fold(line, self.width) for line in text.split("\n")) if self.is_terminal else text


def _set_in(text: str) -> str:
    first, *rest = text.split("\n")
    flat = any(line and not line.startswith(" ") for line in rest)
    return "\n".join([first, *(f"  {line}" if flat else line for line in rest)])


def fold(line: str, columns: int) -> str:
    if len(line) <= columns:
        return line
    inset = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, columns, subsequent_indent=inset, break_long_words=False, break_on_hyphens=False)
