"""What the commands print on: nothing that comes from a server is taken for markup or for a terminal's commands."""

from __future__ import annotations

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
        self.print(Text.assemble((label, style), " ", harmless(text)))
