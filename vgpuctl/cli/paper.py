"""What the commands print on: nothing that comes from a server is taken for markup or for a terminal's commands."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

_CONTROL = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def harmless(text: str) -> str:
    """Names of VMs, pods and cards are others' words: a control character in them is shown, not obeyed."""
    return text.translate(_CONTROL)


class Paper(Console):
    """NO_COLOR and terminals without colour are honoured by rich; a pipe gets plain text."""

    def __init__(self, *, error: bool = False) -> None:
        super().__init__(stderr=error, highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(harmless(text), **options)

    def say(self, label: str, text: str, style: str = "bold") -> None:
        """`Error: …`, the label in its style."""
        self.print(Text.assemble((label, style), " ", harmless(text)))
