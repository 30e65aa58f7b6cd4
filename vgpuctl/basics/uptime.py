"""A clock for promises to other machines: it also runs while this machine sleeps."""

from __future__ import annotations

import time

# Linux: CLOCK_MONOTONIC, and so `time.monotonic`, stands still while a laptop sleeps; CLOCK_BOOTTIME does not.
# macOS has no CLOCK_BOOTTIME, and there CLOCK_MONOTONIC counts the sleep.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def uptime_s() -> float:
    """Return the seconds since some moment in the past. No other machine's clock may be compared with it."""
    return time.clock_gettime(_CLOCK)
