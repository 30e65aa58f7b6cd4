"""History collectors: a newest page, and a place from which a client reads on or back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.vcenter.inventory.history import KEPT
from vgpuctl.sim.vcenter.wire import faults

_USUAL_PAGE = 10


@dataclass(slots=True)
class Scroll:
    """`gap`: the place is after the item of that number; none before anything has been read."""

    filter: Any
    items: Callable[[], Iterable[Any]]
    matches: Callable[[Any, Any], bool]
    number: Callable[[Any], int]
    size: int = _USUAL_PAGE
    gap: int | None = None

    def resize(self, count: int) -> None:
        if not 0 <= count <= KEPT:
            raise faults.invalid_argument("maxCount")
        self.size = count or _USUAL_PAGE

    def found(self) -> list[Any]:
        return [item for item in self.items() if self.matches(item, self.filter)]

    def latest_page(self) -> list[Any]:
        """Newest first."""
        return self.found()[::-1][: self.size]

    def reset(self) -> None:
        latest = self.latest_page()
        self.gap = self.number(latest[-1]) - 1 if latest else None

    def rewind(self) -> None:
        self.gap = 0

    def read_next(self, count: int) -> list[Any]:
        _check(count)
        items = [item for item in self.found() if self.number(item) > (self.gap or 0)][:count]
        if items:
            self.gap = self.number(items[-1])
        return items

    def read_previous(self, count: int) -> list[Any]:
        _check(count)
        items = [item for item in self.found() if self.gap is None or self.number(item) <= self.gap][::-1][:count]
        if items:
            self.gap = self.number(items[-1]) - 1
        return items


def _check(count: int) -> None:
    if not 0 < count <= KEPT:
        raise faults.invalid_argument("maxCount")
