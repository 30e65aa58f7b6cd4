"""The JSON Schemas of what people write, for their editors. The reading of a file is judged by the reader alone."""

from __future__ import annotations

from pathlib import Path


def schema_text(of: str) -> str:
    """`of`: profiles or timetable."""
    return Path(__file__).with_name(f"{of}.schema.json").read_text(encoding="utf-8")
