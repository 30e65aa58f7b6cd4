"""Durations as people write them (`90s`, `10m`, `1h`) and as we show them (`2 min 8 s`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Seconds by unit. A number without a unit is seconds.
UNITS: Mapping[str, float] = {"": 1, "s": 1, "m": 60, "h": 3600}

_WRITTEN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,20})?)([a-z]*)")


def parse_duration(text: str, units: Mapping[str, float] = UNITS) -> float | None:
    """Return the seconds in `90s`, `10m` or `1h`; None for any other text."""
    match = _WRITTEN.fullmatch(text)
    return float(match[1]) * units[match[2]] if match and match[2] in units else None


def format_duration(seconds: float) -> str:
    """Return a duration: `41 s`, `2 min 8 s`, `3 h 12 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
