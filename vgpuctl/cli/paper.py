"""What the commands print on: nothing that comes from a server is taken for markup or for a terminal's commands."""

from __future__ import annotations

import textwrap
from typing import Any

from rich.console import Console
from rich.text import Text

from vgpuctl.cli.harmless import harmless


class Paper(Console):
    """NO_COLOR and terminals without colour are honoured by rich; a pipe gets plain text."""

    def __init__(self, *, error: bool = False) -> None:
        super().__init__(stderr=error, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(harmless(text), **options)

    def say(self, label: str, text: str, style: str = "bold") -> None:
        """`Error: …`, the label in its style."""
        said = Text(self._folded(f"{label} {harmless(text)}"))
        said.stylize(style, 0, len(label))
        self.print(said)

    def tell(self, text: str, style: str = "") -> None:
        """A sentence, or several lines of them."""
        self.print(self._folded(text), style=style)

    def _folded(self, text: str) -> str:
        """On a terminal no word is split, and lines after the first are set in; elsewhere a line stays a line."""
        return "\n".join(fold(line, self.width) for line in text.split("\n")) if self.is_terminal else text


def fold(line: str, columns: int) -> str:
    if len(line) <= columns:
        return line
    inset = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, columns, subsequent_indent=inset, break_long_words=False, break_on_hyphens=False)
