"""Reads one scenario and collects every problem with its key, so that all are reported at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from vgpuctl.sim.errors import SimError
from vgpuctl.sim.scenarios.yaml_bounds import MAX_BYTES, load
from vgpuctl.sim.words import nearest

#: Bounds on the names of one pattern and of a whole scenario: each name may be a VM with its node.
MAX_NAMES, MAX_NAMES_IN_ALL = 20_000, 100_000
MAX_PROBLEMS_SHOWN = 50
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(MiB|GiB|TiB)(/s)?")
_MIB = {"MiB": 1, "GiB": 1024, "TiB": 1024 * 1024}
_TIME = re.compile(r"([0-9]{1,9})(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_RANGE = re.compile(r"\[([0-9]{1,9})-([0-9]{1,9})\]")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?")

Section = Mapping[str, Any]


class BadScenario(SimError):  # noqa: N818
    """A scenario that cannot be used, with all its problems."""


class ScenarioReader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self._lines: dict[str, int] = {}
        self._names_read = 0

    def add_problem(self, key: str, what: str) -> None:
        """Add a problem of a key such as `hosts[0].name`. A key that is missing has the line of what lacks it."""
        place = key.lstrip(".")
        while place and place not in self._lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        where = f"line {self._lines[place]}: " if place else ""
        self.problems.append(f"{where}{key.lstrip('.')}: {what}")

    def finish(self) -> None:
        if self.problems:
            shown, more = self.problems[:MAX_PROBLEMS_SHOWN], len(self.problems) - MAX_PROBLEMS_SHOWN
            lines = [f"  {each}" for each in (*shown, *([f"and {more} faults more"] if more > 0 else []))]
            raise BadScenario("\n".join([f"{self.path} cannot be used:", *lines]))

    def document(self) -> Any:
        try:
            with self.path.open("rb") as file:
                loaded = load(file.read(MAX_BYTES + 1))
        except OSError as error:
            raise BadScenario(f"{self.path} cannot be read: {error}.") from error
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = f" line {mark.line + 1}, column {mark.column + 1}:" if mark else ""
            raise BadScenario(f"{self.path} is no YAML:{where} {getattr(error, 'problem', error)}") from error
        self._lines = loaded.lines
        for key in loaded.twice:
            self.add_problem(key, "is written twice")
        return loaded.data

    def mapping(self, value: Any, key: str, known: Iterable[str] | None = None) -> Section:
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            self.add_problem(key, "must be a mapping")
            return {}
        for name in value:
            if known is not None and name not in known:
                self.add_problem(f"{key}.{name}" if key else name, f"is not known{nearest(name, known)}")
        return value

    def items(self, value: Any, key: str, known: Iterable[str]) -> list[tuple[str, Section]]:
        """Return the mappings of a list, each with its key."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.add_problem(key, "must be a list")
            return []
        return [(f"{key}[{n}]", self.mapping(item, f"{key}[{n}]", known)) for n, item in enumerate(value)]

    def text(self, section: Section, name: str, key: str, default: str = "") -> str:
        value = section.get(name, default)
        if not isinstance(value, str):
            self.add_problem(f"{key}.{name}", "must be a text")
            return default
        return value

    def place(self, item: Section, name: str, key: str, default: str) -> str:
        """Return the name of a datacenter, cluster or datastore. A slash would end it in an inventory path."""
        place = self.text(item, name, key, default)
        if set(place) & set("/[]"):
            self.add_problem(f"{key}.{name}", f"{place!r} must be a name without / and brackets")
        return place

    def texts(self, value: Any, key: str) -> tuple[str, ...]:
        """Return one text, or a list of texts, as a tuple."""
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not values or not all(isinstance(each, str) for each in values):
            self.add_problem(key, "must be a text, or a list of texts")
            return ()
        return tuple(values)

    def choice(self, section: Section, name: str, key: str, choices: Iterable[str], default: str) -> str:
        """YAML reads `on` and `off` as true and false; here they stay words."""
        value = section.get(name, default)
        value = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
        if value not in tuple(choices):
            self.add_problem(f"{key}.{name}", f"must be one of {', '.join(choices)}{nearest(str(value), choices)}")
            return default
        return str(value)

    def boolean(self, section: Section, name: str, key: str, default: bool = False) -> bool:
        value = section.get(name, default)
        if not isinstance(value, bool):
            self.add_problem(f"{key}.{name}", "must be true or false")
        return value is True

    def number(self, section: Section, name: str, key: str, default: int, most: int = MAX_NAMES) -> int:
        value = section.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            self.add_problem(f"{key}.{name}", f"must be a number up to {most}")
            return default
        return value

    def mib(self, section: Section, name: str, key: str, default: int | None = None) -> int | None:
        value = section.get(name)
        if value is None:
            return default
        match = _SIZE.fullmatch(str(value))
        if match is None:
            self.add_problem(f"{key}.{name}", f"{value!r} is not a size such as 64GiB or 500MiB")
            return default
        return round(float(match.group(1)) * _MIB[match.group(2)])

    def seconds(self, section: Section, name: str, key: str) -> float | None:
        value = section.get(name)
        if value is None:
            return None
        match = _TIME.fullmatch(str(value))
        if match is None:
            self.add_problem(f"{key}.{name}", f"{value!r} is not a time such as 20s or 3m")
            return None
        return int(match.group(1)) * _SECONDS[match.group(2)]

    def require(self, name: str, key: str, kind: str, known: Iterable[str]) -> None:
        """Add a problem if `known` lacks this name. `kind`: what the name is of, such as a host."""
        if name not in (names := list(known)):
            self.add_problem(key, f"there is no {kind} {name!r}{nearest(name, names)}")

    def names(self, section: Section, key: str, field: str = "name") -> list[str]:
        """Expand `worker-[1-4]` to four names."""
        pattern = section.get(field)
        if pattern is None:
            self.add_problem(key, f"needs a {field}")
            return []
        bare = _RANGE.sub("0", str(pattern))
        ranges = [(int(first), int(last)) for first, last in _RANGE.findall(str(pattern))]
        if not _NAME.fullmatch(bare) or len(ranges) > 1 or any(last < first for first, last in ranges):
            self.add_problem(f"{key}.{field}", f"{pattern!r} is not a name such as worker-1 or worker-[1-4]")
            return []
        if not ranges:
            return [str(pattern)]
        ((first, last),) = ranges
        self._names_read += last - first + 1
        if last - first >= MAX_NAMES or self._names_read > MAX_NAMES_IN_ALL:
            most = MAX_NAMES if last - first >= MAX_NAMES else f"{MAX_NAMES_IN_ALL} names in all, or {MAX_NAMES}"
            self.add_problem(f"{key}.{field}", f"is more than {most} names")
            return []
        return [_RANGE.sub(str(number), str(pattern)) for number in range(first, last + 1)]
