"""JSON Schemas of the files, for editors. Only the reader decides whether a file is valid."""

from __future__ import annotations

from pathlib import Path


def schema_text(of: str) -> str:
    """Return a schema as text. `of`: profiles or timetable."""
    return Path(__file__).with_name(f"{of}.schema.json").read_text(encoding="utf-8")
