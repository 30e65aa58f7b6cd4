"""One file while it is read: all its problems are told at once, each with its line and key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from vgpuctl.files.yaml_lines import Lined, load
from vgpuctl.model.errors import UsageError
from vgpuctl.model.names import RANGE, Names
from vgpuctl.model.nearest import nearest

Word = TypeVar("Word", bound=StrEnum)

VERSION = 1
MAX_BYTES = 1 << 20
MAX_WORKERS = 100_000

_NAME_CHARACTERS = re.compile(r"[^\s\[\]/\x00-\x1f\x7f][^\[\]/\x00-\x1f\x7f]{0,79}")
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,20})?)(s|m|h)?")
_UNITS = {"s": 1, "m": 60, "h": 3600, None: 1}


class Reading:
    """Collects what is wrong instead of stopping at the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[tuple[int, str]] = []
        self.legible = True
        self._lined = Lined()

    def wrong(self, key: str, what: str) -> None:
        if self.legible:
            self.problems.append((self._lined.line(key), f"{key}: {what}"))

    def where(self, key: str) -> str:
        """`profiles.yaml:12`"""
        return f"{self.path}:{self._lined.line(key)}"

    def finish(self) -> None:
        if self.problems:
            raise UsageError(self.told(), hint="Nothing was changed.")

    def told(self) -> str:
        lines = "\n".join(f"  line {line}: {problem}" for line, problem in sorted(set(self.problems)))
        return f"{self.path} cannot be used:\n{lines}"

    def document(self, allowed: Iterable[str]) -> dict[str, Any]:
        """The file's own mapping, its version and keys checked."""
        try:
            self._lined = _load(self.path)
        except yaml.YAMLError as error:
            return self._illegible(error)
        found = self.mapping(self._lined.content, "the file")
        for key in self._lined.twice:
            self.wrong(key, "is there twice")
        self.known(found, allowed, "")
        if found.get("version") != VERSION or found.get("version") is True:
            self.wrong("version", f"must be {VERSION}")
        return found

    def _illegible(self, error: yaml.YAMLError) -> dict[str, Any]:
        """Told with what is wrong in other files; nothing else is said of it, nor of what rests on it."""
        self.legible = False
        mark = getattr(error, "problem_mark", None)
        self.problems.append((mark.line + 1 if mark else 1, f"is no YAML{_where(error)}"))
        return {}

    def mapping(self, value: Any, key: str) -> dict[str, Any]:
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return value
        if value is not None:
            self.wrong(key, f"must be a mapping, not {_kind(value)}")
        return {}

    def known(self, found: Mapping[str, Any], allowed: Iterable[str], key: str) -> None:
        for name in found:
            if name not in allowed:
                self.wrong(f"{key}{name}", f"is not known{nearest(name, allowed)}")

    def texts(self, value: Any, key: str) -> tuple[str, ...]:
        """A text, or a list of texts."""
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

    def seconds(self, value: Any, key: str, default: float) -> float:
        if value is None:
            return default
        seconds = seconds_of(str(value))
        if seconds is None:
            self.wrong(key, f"{value!r} is no duration, such as 90s, 10m or 1h")
        return default if seconds is None else seconds

    def one_of(self, value: Any, key: str, default: Word) -> Word:
        """One of the words that this kind of thing knows."""
        words = [str(word) for word in type(default)]
        if value is None:
            return default
        # To YAML 1.1, `off` without quotes is no word but false.
        value = "off" if value is False and "off" in words else value
        if value not in words:
            self.wrong(key, f"must be {', '.join(words[:-1])} or {words[-1]}{nearest(str(value), words)}")
            return default
        return type(default)(value)

    def count(self, value: Any, key: str) -> int | None:
        """A whole number from 1."""
        good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not (value is None or good):
            self.wrong(key, "must be a whole number from 1")
        return value if good else None

    def names(self, patterns: tuple[str, ...], key: str) -> Names:
        """Names, ranges and globs; those that are none of these are told and left out."""
        good = tuple(pattern for pattern in patterns if size_of(pattern))
        for pattern in set(patterns) - set(good):
            self.wrong(key, f"{pattern!r} is no VM name such as worker-1, range such as worker-[1-4] or glob as gpu-*")
        return Names(good)


def seconds_of(text: str) -> float | None:
    """`90s`, `10m`, `1h`; a plain number is seconds."""
    match = _DURATION.fullmatch(text)
    return float(match.group(1)) * _UNITS[match.group(2)] if match else None


def size_of(pattern: str) -> int:
    """How many names a pattern stands for; 0 where it is none, or too many."""
    size = int(bool(_NAME_CHARACTERS.fullmatch(RANGE.sub("0", pattern))))
    for first, last in RANGE.findall(pattern):
        size *= max(0, int(last) - int(first) + 1) if len(first) < 10 and len(last) < 10 else 0
    return size if size <= MAX_WORKERS else 0


def _load(path: Path) -> Lined:
    """YAMLError, without the parser's own words where these would quote the file, when it cannot be parsed."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES} bytes.")
        return load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"There is no file {path}.", hint="Pass --profiles and --schedules, or set VGPUCTL_PROFILES."
        ) from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    except (RecursionError, ValueError):
        raise yaml.YAMLError from None


def _where(error: yaml.YAMLError) -> str:
    """The column and what is wrong there, but nothing that stands there: it might be a password."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ""
    plain = isinstance(error, yaml.parser.ParserError | yaml.scanner.ScannerError)
    problem = f": {error.problem}" if plain else ""
    return f" (column {error.problem_mark.column + 1}){problem}"


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", int: "a number", bool: "yes or no"}.get(type(value), type(value).__name__)
