"""Patterns of VM names: plain names, ranges such as `worker-[1-4]`, and globs such as `gpu-*`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

RANGE = re.compile(r"\[([0-9]+)-([0-9]+)\]")


def expand(pattern: str) -> list[str]:
    """Return the names that a pattern means: `worker-[1-4]` → worker-1 … worker-4. A plain name means itself."""
    match = RANGE.search(pattern)
    if match is None:
        return [pattern]
    first, last = match.groups()
    width = len(first) if first.startswith("0") else 0
    middle = [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
    return [name for part in middle for name in expand(pattern[: match.start()] + part + pattern[match.end() :])]


def is_glob(name: str) -> bool:
    return "*" in name or "?" in name


def overlap(one: str, other: str) -> bool:
    """True if both globs mean a common name. It takes at most as many steps as the product of their lengths."""
    ways, known = [(0, 0)], {(0, 0)}
    while ways:
        i, j = ways.pop()
        if i == len(one) or j == len(other):
            if not (one[i:] + other[j:]).strip("*"):
                return True
            continue
        if "*" in (one[i], other[j]):
            further = [(i + 1, j), (i, j + 1)]
        else:
            further = [(i + 1, j + 1)] if one[i] == other[j] or "?" in (one[i], other[j]) else []
        ways += [way for way in further if way not in known]
        known.update(further)
    return False


@dataclass(frozen=True)
class Names:
    """The names that some patterns mean. Globs have only `*` and `?`: brackets are ranges."""

    patterns: tuple[str, ...] = ()

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """Return the names that are written out, with ranges unfolded, each once."""
        return tuple(dict.fromkeys(name for name in self._expanded if not is_glob(name)))

    @cached_property
    def _expanded(self) -> tuple[str, ...]:
        return tuple(name for pattern in self.patterns for name in expand(pattern))

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(self.plain)

    @cached_property
    def _globs(self) -> re.Pattern[str] | None:
        globs = list(dict.fromkeys(filter(is_glob, self._expanded)))
        return re.compile("|".join(map(translate, globs))) if globs else None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return name in self._set or bool(self._globs and self._globs.match(name))

    def of(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self]


#: A number of 18 digits at most: `int` refuses a foreign text of 5,000.
_NUMBERED = re.compile(r"([^\[\]]*?)([0-9]{1,18})([^0-9\[\]]*)", re.DOTALL)


def natural(name: str) -> tuple[tuple[str, int, str], ...]:
    """Return a key for sorting that puts worker-2 before worker-10."""
    # Of two numbers without leading zeros the longer is the larger. `int` refuses a foreign text of 5,000 digits.
    parts = re.findall(r"([^0-9]*)0*([0-9]*)", name)
    return tuple((text, len(digits), digits) for text, digits in parts)


def fold(names: Iterable[str]) -> list[str]:
    """Return patterns that `expand` unfolds to these names: worker-1 … worker-4 → `worker-[1-4]`.

    Two in a row stay two.
    """
    runs: list[list[str]] = []
    for name in sorted(set(names), key=natural):
        if runs and _follows(runs[-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [short for run in runs for short in ([_range(run[0], run[-1])] if len(run) > 2 else run)]


def _follows(run: list[str], name: str) -> bool:
    """True if the name is the next one of the run, written as `expand` would write it."""
    first, last = _NUMBERED.fullmatch(run[0]), _NUMBERED.fullmatch(run[-1])
    if first is None or last is None:
        return False
    width = len(first[2]) if first[2].startswith("0") else 0
    return name == f"{last[1]}{str(int(last[2]) + 1).zfill(width)}{last[3]}"


def _range(first: str, last: str) -> str:
    begin, end = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    assert begin is not None and end is not None
    return f"{begin[1]}[{begin[2]}-{end[2]}]{begin[3]}"
