"""How steps, times and counts are said to people."""

from __future__ import annotations

from datetime import datetime

#: Kind of step → (while it lasts, when it is done). Steps that are not here need no word of their own.
STEP_WORDS = {
    "Drain": ("draining", "drained"),
    "Suspend": ("suspending", "suspended"),
    "ShutDown": ("shutting down", "shut down"),
    "Attach": ("changing its vGPUs", "changed"),
    "PowerOn": ("starting", "started"),
    "WaitBack": ("coming back", "ready"),
    "Label": ("labelling", "labelled"),
    "Uncordon": ("uncordoning", "back"),
}


def seconds(value: float) -> str:
    """`41 s`, `2 min 8 s`, `3 h 12 min`."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def clock(moment: datetime) -> str:
    return moment.strftime("%H:%M:%S")


def local_time(utc: str) -> str:
    """`2026-11-18T07:04:11Z` → `08:04` here; an empty or strange text stays out of the way."""
    try:
        return datetime.fromisoformat(utc).astimezone().strftime("%H:%M")
    except ValueError:
        return ""
