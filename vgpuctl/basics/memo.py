"""Keeps a result for as long as what it was made of stays the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Memo(Generic[Made]):
    """Results by key, each with what it was made of.

    A result is made anew once what it was made of is no longer equal. Then a caller cannot see whether it was kept.
    `make` may fill other memos, and depends on nothing but what `made_of` holds.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Made]] = {}

    def of(self, key: str, made_of: object, make: Callable[[], Made]) -> Made:
        known = self._known.get(key)
        # Decision 0015: expensive answers are worked out again only after a change.
        if known is None or known[0] != made_of:
            known = self._known[key] = (made_of, make())
        return known[1]

    def clear(self) -> None:
        self._known.clear()
