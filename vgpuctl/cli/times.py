"""Times of day for people, in local time."""

from __future__ import annotations

from datetime import datetime


def clock(moment: datetime) -> str:
    return moment.strftime("%H:%M:%S")
