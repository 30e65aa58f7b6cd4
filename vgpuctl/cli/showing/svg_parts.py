"""What all drawn pictures share: safe text, and colours on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from vgpuctl.cli.sanitize import one_line
from vgpuctl.model.errors import UsageError

STYLE = """\
text { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.head { font-weight: 700; font-size: 15px }
"""
#: Of each class: the property, and its colour on light and on dark backgrounds.
#: They are written out: not every viewer supports variables.
PLAIN = {
    "text": ("fill", "#1f2933", "#e6eaee"),
    ".paper": ("fill", "#ffffff", "#14181d"),
    ".grid": ("stroke", "#e3e7eb", "#2b323a"),
    ".quiet": ("fill", "#66717d", "#98a3ae"),
}


def svg_text(words: str) -> str:
    return escape(one_line(words), {'"': "&quot;"})


def colour_rules(colours: Mapping[str, tuple[str, str, str]]) -> str:
    light = "\n".join(f"{name} {{ {what}: {colour} }}" for name, (what, colour, _) in colours.items())
    dark = "\n".join(f"  {name} {{ {what}: {colour} }}" for name, (what, _, colour) in colours.items())
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def write_picture(path: Path, svg: str) -> None:
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
