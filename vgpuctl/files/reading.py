"""One file while it is read: all its problems are told at once, each with its key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from vgpuctl.model.errors import UsageError
from vgpuctl.model.profiles import expand

VERSION = 1
MAX_BYTES = 1 << 20
MAX_WORKERS = 100_000

_NAME_CHARACTERS = re.compile(r"[A-Za-z0-9._-]+")
_RANGE = re.compile(r"\[(\d+)-(\d+)\]")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_UNITS = {"s": 1, "m": 60, "h": 3600, None: 1}


class Reading:
    """Collects what is wrong instead of stopping at the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []

    def wrong(self, key: str, what: str) -> None:
        self.problems.append(f"{key}: {what}")

    def finish(self) -> None:
        if self.problems:
            lines = "\n".join(f"  {problem}" for problem in self.problems)
            raise UsageError(f"{self.path} cannot be used:\n{lines}", hint="Nothing was changed.")

    def document(self, allowed: Iterable[str]) -> dict[str, Any]:
        """The file's own mapping, its version and keys checked."""
        found = self.mapping(_load(self.path), "the file")
        self.known(found, allowed, "")
        if found.get("version") != VERSION:
            self.wrong("version", f"must be {VERSION}")
        return found

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
        match = _DURATION.fullmatch(str(value))
        if match is None:
            self.wrong(key, f"{value!r} is no duration, such as 90s, 10m or 1h")
            return default
        return float(match.group(1)) * _UNITS[match.group(2)]

    def worker_names(self, pattern: str, key: str) -> list[str]:
        """`worker-[1-4]` → four names."""
        size = 1
        for first, last in _RANGE.findall(pattern):
            size *= max(0, int(last) - int(first) + 1)
        if not _NAME_CHARACTERS.fullmatch(_RANGE.sub("0", pattern)) or not 0 < size <= MAX_WORKERS:
            self.wrong(key, f"{pattern} is no VM name, such as worker-1, nor a range, such as worker-[1-4]")
            return []
        return expand(pattern)


def nearest(word: str, words: Iterable[str]) -> str:
    """`; did you mean …?` where one is near."""
    close = difflib.get_close_matches(word, list(words), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _load(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES} bytes.")
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"There is no file {path}.", hint="Pass --profiles and --schedules, or set VGPUCTL_PROFILES."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{path} is no YAML: {' '.join(str(error).split())}") from error


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", int: "a number", bool: "yes or no"}.get(type(value), type(value).__name__)
