"""Counts and lists of names as phrases: `3 pods`, `worker-[1-4]`, `a, b, c and 2 more`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vgpuctl.basics.names import fold

NAMES_SHOWN = 3


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_names(names: Sequence[object], most: int = NAMES_SHOWN) -> str:
    """Return the first names and the number of the others: `a, b, c and 2 more`."""
    shown = ", ".join(str(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def folded_names(names: Iterable[str], longest: int = 60) -> str:
    """Return names folded to ranges. Names beyond `longest` characters are counted: `worker-[1-40] node-7 … (57)`."""
    names = list(names)
    patterns = fold(names)
    shown = patterns[:1]
    for pattern in patterns[1:]:
        if len(" ".join([*shown, pattern])) > longest:
            return f"{' '.join(shown)} … ({len(names)})"
        shown.append(pattern)
    return " ".join(shown)
