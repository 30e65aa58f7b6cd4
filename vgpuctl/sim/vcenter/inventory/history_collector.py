"""History collectors for events and tasks: the latest page, and a position from which a client reads on or back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.vcenter.inventory.history import MAX_HISTORY
from vgpuctl.sim.vcenter.wire import faults

#: vcsim 0.56 has the same page sizes: 10 by default, 1000 at most.
_DEFAULT_PAGE = 10


@dataclass(slots=True)
class HistoryCollector:
    """`position`: after the item of that number; None before anything was read."""

    filter: Any
    items: Callable[[], Iterable[Any]]
    matches: Callable[[Any, Any], bool]
    number: Callable[[Any], int]
    size: int = _DEFAULT_PAGE
    position: int | None = None

    def resize(self, count: int) -> None:
        if not 0 <= count <= MAX_HISTORY:
            raise faults.invalid_argument("maxCount")
        self.size = count or _DEFAULT_PAGE

    def matching(self) -> list[Any]:
        return [item for item in self.items() if self.matches(item, self.filter)]

    def latest_page(self) -> list[Any]:
        """Return the latest items, newest first."""
        # vSphere API: the latest page, with the newest items. vSphere promises no order in it.
        return self.matching()[::-1][: self.size]

    def reset(self) -> None:
        # vSphere API: ResetCollector moves to the item just before the latest page, RewindCollector to the oldest.
        latest = self.latest_page()
        self.position = self.number(latest[-1]) - 1 if latest else None

    def rewind(self) -> None:
        self.position = 0

    def read_next(self, count: int) -> list[Any]:
        _check(count)
        items = [item for item in self.matching() if self.number(item) > (self.position or 0)][:count]
        if items:
            self.position = self.number(items[-1])
        return items

    def read_previous(self, count: int) -> list[Any]:
        _check(count)
        items = [item for item in self.matching() if self.position is None or self.number(item) <= self.position][::-1][
            :count
        ]
        if items:
            self.position = self.number(items[-1]) - 1
        return items


def _check(count: int) -> None:
    # vSphere API: `maxCount` bounds one page.
    if not 0 < count <= MAX_HISTORY:
        raise faults.invalid_argument("maxCount")
