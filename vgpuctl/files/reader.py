"""Reads one file and collects all its faults, each with its line and key."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from vgpuctl.basics.bounded import cut
from vgpuctl.basics.durations import parse_duration
from vgpuctl.basics.names import RANGE, Names, is_glob
from vgpuctl.basics.nearest import nearest
from vgpuctl.files.bounded_yaml import YamlDocument
from vgpuctl.files.loading import NotYamlError, load_file
from vgpuctl.model.errors import UsageError

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

#: vSphere: a VM's name has at most 80 characters. Brackets are our ranges.
_NAME_CHARACTERS = re.compile(r"[^\s\[\]/\x00-\x1f\x7f][^\[\]/\x00-\x1f\x7f]{0,79}")


class NameBudget:
    """How many names all files together may still use: a few ranges could exceed the memory."""

    def __init__(self) -> None:
        self.names, self.globs = MAX_NAMES, MAX_GLOBS

    def take(self, pattern: str) -> str:
        """Take what a good pattern needs. Return what there is too much of, or ""."""
        if is_glob(pattern):
            self.globs -= 1
            return f"is one glob too many: at most {MAX_GLOBS} are allowed" if self.globs < 0 else ""
        self.names -= count_names(pattern)
        return f"and the patterns before it name more than {MAX_NAMES} VMs" if self.names < 0 else ""


class FileReader:
    """Collects faults instead of stopping at the first. `budget` is shared by all files that are read together."""

    def __init__(self, path: Path, budget: NameBudget | None = None) -> None:
        self.path = path
        self.faults: list[tuple[int, str]] = []
        self.is_yaml = True
        self._document = YamlDocument()
        self._budget, self._hints = budget or NameBudget(), HINTS

    def add_fault(self, key: str, problem: str) -> None:
        if self.is_yaml and len(self.faults) < FAULTS_KEPT:
            text = f"{cut(key, LONGEST_WHAT)}: {cut(problem, LONGEST_WHAT)}"
            self.faults.append((self._document.line(key), text))

    def suggestion(self, word: str, known: Collection[str]) -> str:
        """Return a suggestion for a word. Only the first words get one: a long file would take minutes."""
        self._hints -= 1
        can_suggest = self._hints >= 0 and len(known) <= MOST_COMPARED and len(word) <= LONGEST_WHAT
        return nearest(word, known) if can_suggest else ""

    def first_entries(self, entries: Collection[Thing], most: int, key: str) -> list[Thing]:
        """Return the first entries; more of them are a fault."""
        if len(entries) > most:
            self.add_fault(key, f"has more than {most} entries")
        return list(islice(entries, most))

    def place(self, key: str) -> str:
        """Return the place of a key: `profiles.yaml:12`."""
        return f"{self.path}:{self._document.line(key)}"

    def raise_faults(self) -> None:
        if self.faults:
            raise UsageError(self.report(), hint="Nothing was changed.")

    def report(self) -> str:
        faults = sorted(set(self.faults))
        lines = [f"  line {line}: {problem}" for line, problem in faults[:FAULTS_SHOWN]]
        more = len(faults) - FAULTS_SHOWN
        return "\n".join([f"{self.path} cannot be used:", *lines, *([f"  and {more} more faults"] if more > 0 else [])])

    def read_document(self, allowed: Collection[str]) -> dict[str, Any]:
        """Return the file's mapping, with its version and keys checked."""
        try:
            self._document = load_file(self.path)
        except NotYamlError as error:
            # Report only this about the file. Faults in it, or in what depends on it, would be guesses.
            self.is_yaml = False
            self.faults.append((error.line, error.reason))
            return {}
        entries = self.read_mapping(self._document.content, "the file")
        for key in self._document.duplicates:
            self.add_fault(key, "is written twice")
        self.check_keys(entries, allowed, "")
        # In Python, True equals 1.
        if entries.get("version") != VERSION or entries.get("version") is True:
            self.add_fault("version", f"must be {VERSION}")
        return entries

    def read_mapping(self, value: Any, key: str) -> dict[str, Any]:
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return value
        if value is not None:
            self.add_fault(key, f"must be a mapping, not {_type_name(value)}")
        return {}

    def check_keys(self, entries: Mapping[str, Any], allowed: Collection[str], key: str) -> None:
        for name in entries:
            if name not in allowed:
                self.add_fault(f"{key}{name}", f"is not a known key{self.suggestion(name, allowed)}")

    def read_texts(self, value: Any, key: str) -> tuple[str, ...]:
        """Return a text, or a list of texts, as a tuple."""
        if value is None:
            return ()
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(each, str) and each for each in values):
            self.add_fault(key, "must be a string, or a list of strings")
            return ()
        return tuple(values)

    def read_bool(self, value: Any, key: str) -> bool:
        if not (value is None or isinstance(value, bool)):
            self.add_fault(key, "must be true or false")
        return value is True

    def read_duration(self, value: Any, key: str, default: float) -> float:
        if value is None:
            return default
        seconds = parse_duration(str(value))
        if seconds is None:
            self.add_fault(key, f"{value!r} is not a duration such as 90s, 10m or 1h")
        return default if seconds is None else seconds

    def read_word(self, value: Any, key: str, default: Word) -> Word:
        """Return one of the words of this kind."""
        known = [str(word) for word in type(default)]
        if value is None:
            return default
        # In YAML 1.1, `off` without quotes is not a word but false.
        value = "off" if value is False and "off" in known else value
        if value not in known:
            self.add_fault(key, f"must be {', '.join(known[:-1])} or {known[-1]}{self.suggestion(str(value), known)}")
            return default
        return type(default)(value)

    def read_count(self, value: Any, key: str) -> int | None:
        """Return a whole number from 1."""
        good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not (value is None or good):
            self.add_fault(key, "must be a whole number from 1")
        return value if good else None

    def read_names(self, patterns: tuple[str, ...], key: str) -> Names:
        """Return names, ranges and globs; anything else is reported and left out."""
        good = []
        for pattern in dict.fromkeys(patterns):
            if not count_names(pattern):
                usual = "a VM name such as worker-1, a range such as worker-[1-4] or a glob such as gpu-*"
                self.add_fault(key, f"{pattern!r} is not {usual}")
            elif why := self._budget.take(pattern):
                self.add_fault(key, f"{pattern!r} {why}")
            else:
                good.append(pattern)
        return Names(tuple(good))


def count_names(pattern: str) -> int:
    """Return how many names a pattern means; 0 if it is invalid or means too many."""
    size = int(bool(_NAME_CHARACTERS.fullmatch(RANGE.sub("0", pattern))))
    for first, last in RANGE.findall(pattern):
        size *= max(0, int(last) - int(first) + 1) if len(first) < 10 and len(last) < 10 else 0
    return size if size <= MAX_WORKERS else 0


def _type_name(value: Any) -> str:
    return {list: "a list", str: "a string", int: "a number", bool: "true or false"}.get(
        type(value), type(value).__name__
    )
