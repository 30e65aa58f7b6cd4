"""What commands print on. Text from a server is never read as markup, as terminal commands, or as a line of ours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from vgpuctl.cli.sanitize import one_line, sanitize


class SafeConsole(Console):
    """A console. rich honours NO_COLOR and terminals without colour; a pipe gets plain text."""

    def __init__(self, *, error: bool = False) -> None:
        super().__init__(stderr=error, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render(self, *args: Any, **options: Any) -> Iterable[Segment]:
        """Sanitize everything that rich prints, also tables redrawn in place. rich's own terminal commands pass."""
        for segment in super().render(*args, **options):
            yield segment if segment.control else Segment(sanitize(segment.text), segment.style)

    def render_str(self, text: str, **options: Any) -> Text:
        """Sanitize a text before rich measures it and removes what it does not print."""
        return super().render_str(sanitize(text), **options)

    def print_labelled(self, label: str, text: str, style: str = "bold") -> None:
        """Print `Error: …`, with a styled label. Later lines are indented, so none can pass for another label."""
        label = one_line(label)
        labelled = Text(self._folded(_set_in(f"{label} {sanitize(text)}")))
        labelled.stylize(style, 0, len(label))
        self.print(labelled)

    def print_text(self, text: str, style: str = "") -> None:
        """Print a sentence, or several lines."""
        self.print(self._folded(text), style=style)

    def _folded(self, text: str) -> str:
        """Fold the text. On a terminal words stay whole and later lines are indented; elsewhere a line stays a line."""
        return "\n".join(fold_line(line, self.width) for line in text.split("\n")) if self.is_terminal else text


def _set_in(text: str) -> str:
    first, *rest = text.split("\n")
    flat = any(line and not line.startswith(" ") for line in rest)
    return "\n".join([first, *(f"  {line}" if flat else line for line in rest)])


def fold_line(line: str, columns: int) -> str:
    if len(line) <= columns:
        return line
    inset = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, columns, subsequent_indent=inset, break_long_words=False, break_on_hyphens=False)
