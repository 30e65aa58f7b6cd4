"""YAML with the line of every key, and with what plain loading would hide: keys that are there twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml


@dataclass(slots=True)
class Lined:
    """A document; `lines`: where each key stands, by paths such as `shifts.day.starts` or `workers[2]`."""

    content: Any = None
    lines: dict[str, int] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)

    def line(self, key: str) -> int:
        """The line of this key, or of the nearest one above it that is there."""
        while key and key not in self.lines:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return self.lines.get(key, 1)


def load(text: str) -> Lined:
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        found = Lined(loader.construct_document(root) if root is not None else None)
        for path, line in _walk(root, "", set()):
            if path in found.lines:
                found.twice.append(path)
            found.lines[path] = line
    finally:
        loader.dispose()
    return found


def _walk(node: Any, path: str, seen: set[int]) -> Iterator[tuple[str, int]]:
    """Every key with its line. What an alias repeats is walked once: a file may not blow up."""
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}" if path else str(key.value)
            yield below, key.start_mark.line + 1
            yield from _walk(value, below, seen)
    else:
        for number, value in enumerate(node.value):
            yield f"{path}[{number}]", value.start_mark.line + 1
            yield from _walk(value, f"{path}[{number}]", seen)
