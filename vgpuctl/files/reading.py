"""Reads one file and collects all its faults, each with its line and key."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from vgpuctl.files.loading import IllegibleError, load_file
from vgpuctl.files.yaml_lines import Lined
from vgpuctl.model.bounded import cut
from vgpuctl.model.durations import parse_duration
from vgpuctl.model.errors import UsageError
from vgpuctl.model.names import RANGE, Names, is_glob
from vgpuctl.model.nearest import nearest

Word = TypeVar("Word", bound=StrEnum)
Thing = TypeVar("Thing")

VERSION = 1
#: For one pattern, and for all patterns of all files: twice the limit of one pattern.
MAX_WORKERS, MAX_NAMES = 100_000, 200_000
#: For all files together: each name that vCenter shows is compared with each glob.
MAX_GLOBS = 256
#: More faults than a person reads, more suggestions than a second allows, words longer than real ones.
FAULTS_SHOWN, FAULTS_KEPT, HINTS, LONGEST_WHAT = 50, 10_000, 20, 500
#: Comparing with more words takes longer than a person waits for a suggestion.
MOST_COMPARED = 2000

_NAME_CHARACTERS = re.compile(r"[^\s\[\]/\x00-\x1f\x7f][^\[\]/\x00-\x1f\x7f]{0,79}")


class Room:
    """How many names all files together may still use: a few ranges could exceed the memory."""

    def __init__(self) -> None:
        self.names, self.globs = MAX_NAMES, MAX_GLOBS

    def lacking(self, pattern: str) -> str:
        """Take what a good pattern needs. Return what there is too much of, or ""."""
        if is_glob(pattern):
            self.globs -= 1
            return f"is one of more than {MAX_GLOBS} globs" if self.globs < 0 else ""
        self.names -= size_of(pattern)
        return f"with the patterns before it names more than {MAX_NAMES} VMs" if self.names < 0 else ""


class Reading:
    """Collects faults instead of stopping at the first. `room` is shared by all files that are read together."""

    def __init__(self, path: Path, room: Room | None = None) -> None:
        self.path = path
        self.problems: list[tuple[int, str]] = []
        self.legible = True
        self._lined = Lined()
        self._room, self._hints = room or Room(), HINTS

    def wrong(self, key: str, what: str) -> None:
        if self.legible and len(self.problems) < FAULTS_KEPT:
            told = f"{cut(key, LONGEST_WHAT)}: {cut(what, LONGEST_WHAT)}"
            self.problems.append((self._lined.line(key), told))

    def near(self, word: str, words: Collection[str]) -> str:
        """Return a suggestion for a word. Only the first words get one: a long file would take minutes."""
        self._hints -= 1
        few = self._hints >= 0 and len(words) <= MOST_COMPARED and len(word) <= LONGEST_WHAT
        return nearest(word, words) if few else ""

    def few(self, found: Collection[Thing], most: int, key: str) -> list[Thing]:
        """Return the first entries; more of them are a fault."""
        if len(found) > most:
            self.wrong(key, f"has more than {most} entries")
        return list(islice(found, most))

    def where(self, key: str) -> str:
        """Return the place of a key: `profiles.yaml:12`."""
        return f"{self.path}:{self._lined.line(key)}"

    def finish(self) -> None:
        if self.problems:
            raise UsageError(self.told(), hint="Nothing was changed.")

    def told(self) -> str:
        problems = sorted(set(self.problems))
        lines = [f"  line {line}: {problem}" for line, problem in problems[:FAULTS_SHOWN]]
        more = len(problems) - FAULTS_SHOWN
        return "\n".join([f"{self.path} cannot be used:", *lines, *([f"  and {more} faults more"] if more > 0 else [])])

    def document(self, allowed: Collection[str]) -> dict[str, Any]:
        """Return the file's mapping, with its version and keys checked."""
        try:
            self._lined = load_file(self.path)
        except IllegibleError as error:
            # Report only this about the file. Faults in it, or in what depends on it, would be guesses.
            self.legible = False
            self.problems.append((error.line, error.what))
            return {}
        found = self.mapping(self._lined.content, "the file")
        for key in self._lined.twice:
            self.wrong(key, "is there twice")
        self.known(found, allowed, "")
        if found.get("version") != VERSION or found.get("version") is True:
            self.wrong("version", f"must be {VERSION}")
        return found

    def mapping(self, value: Any, key: str) -> dict[str, Any]:
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return value
        if value is not None:
            self.wrong(key, f"must be a mapping, not {_kind(value)}")
        return {}

    def known(self, found: Mapping[str, Any], allowed: Collection[str], key: str) -> None:
        for name in found:
            if name not in allowed:
                self.wrong(f"{key}{name}", f"is not known{self.near(name, allowed)}")

    def texts(self, value: Any, key: str) -> tuple[str, ...]:
        """Return a text, or a list of texts, as a tuple."""
        if value is None:
            return ()
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(each, str) and each for each in values):
            self.wrong(key, "must be a text, or a list of texts")
            return ()
        return tuple(values)

    def yes(self, value: Any, key: str) -> bool:
        if not (value is None or isinstance(value, bool)):
            self.wrong(key, "must be true or false")
        return value is True

    def duration_s(self, value: Any, key: str, default: float) -> float:
        if value is None:
            return default
        seconds = parse_duration(str(value))
        if seconds is None:
            self.wrong(key, f"{value!r} is no duration, such as 90s, 10m or 1h")
        return default if seconds is None else seconds

    def one_of(self, value: Any, key: str, default: Word) -> Word:
        """Return one of the words of this kind."""
        words = [str(word) for word in type(default)]
        if value is None:
            return default
        # In YAML 1.1, `off` without quotes is not a word but false.
        value = "off" if value is False and "off" in words else value
        if value not in words:
            self.wrong(key, f"must be {', '.join(words[:-1])} or {words[-1]}{self.near(str(value), words)}")
            return default
        return type(default)(value)

    def count(self, value: Any, key: str) -> int | None:
        """Return a whole number from 1."""
        good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not (value is None or good):
            self.wrong(key, "must be a whole number from 1")
        return value if good else None

    def names(self, patterns: tuple[str, ...], key: str) -> Names:
        """Return names, ranges and globs; anything else is reported and left out."""
        good = []
        for pattern in dict.fromkeys(patterns):
            if not size_of(pattern):
                usual = "VM name such as worker-1, range such as worker-[1-4] or glob as gpu-*"
                self.wrong(key, f"{pattern!r} is no {usual}")
            elif why := self._room.lacking(pattern):
                self.wrong(key, f"{pattern!r} {why}")
            else:
                good.append(pattern)
        return Names(tuple(good))


def size_of(pattern: str) -> int:
    """Return how many names a pattern stands for; 0 if it is invalid or stands for too many."""
    size = int(bool(_NAME_CHARACTERS.fullmatch(RANGE.sub("0", pattern))))
    for first, last in RANGE.findall(pattern):
        size *= max(0, int(last) - int(first) + 1) if len(first) < 10 and len(last) < 10 else 0
    return size if size <= MAX_WORKERS else 0


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", int: "a number", bool: "yes or no"}.get(type(value), type(value).__name__)
