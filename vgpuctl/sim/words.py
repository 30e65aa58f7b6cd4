"""Helps with mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str:
    """Return `; did you mean …?` if a known word is close to this one, else nothing."""
    close = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def duration_name(field: str) -> str:
    """Return a duration's name as people write it: `pod-end` for `pod_end_s`, `store` for `store_mib_per_s`."""
    return field.removesuffix("_s").removesuffix("_mib_per").replace("_", "-")
