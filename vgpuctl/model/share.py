"""A number of workers, or a share of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_WRITTEN = re.compile(r"([0-9]{1,6})(%?)")


@dataclass(frozen=True, slots=True)
class Share:
    number: int
    percent: bool = False

    @classmethod
    def read(cls, text: str) -> Share | None:
        """Return the share in `2` or `25%`; None for any other text."""
        match = _WRITTEN.fullmatch(text.strip())
        if match is None or int(match[1]) == 0 or (match[2] and int(match[1]) > 100):
            return None
        return cls(int(match[1]), bool(match[2]))

    def of(self, total: int) -> int:
        """Return how many workers that is: at least one."""
        return max(1, math.floor(total * self.number / 100)) if self.percent else self.number
