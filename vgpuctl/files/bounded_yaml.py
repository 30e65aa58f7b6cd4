"""YAML with the line of every key, and with the duplicate keys that plain loading hides.

A small file may expand to a large one: an alias repeats a value, a merge key copies one, and both nest. So the expanded
size is counted while the file is read, and too much is refused with its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import ConstructorError, SafeConstructor

#: Copies that aliases make count, too. A key and its value are two values; so many are read in less than a second.
MOST_VALUES, MOST_CHARACTERS, MOST_ALIASES = 36_000, 2 << 20, 1000
DEEPEST = 32
LONGEST_TEXT = 4096
#: Python's time grows with the square of the digits, also for the base-60 numbers of YAML 1.1.
LONGEST_NUMBER = 64
#: For the paths of all keys together, such as `shifts.day.starts`.
MOST_OF_PLACES = 16 << 20

_NUMBERS = {f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp")}


class TooLargeError(yaml.MarkedYAMLError):
    """The file is larger, deeper or longer than any real one. The message quotes nothing from it."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(None, None, problem, mark)


@dataclass(slots=True)
class YamlDocument:
    """A document. `lines`: the line of each key, by paths such as `shifts.day.starts` or `workers[2]`."""

    content: Any = None
    lines: dict[str, int] = field(default_factory=dict)
    duplicates: list[str] = field(default_factory=list)

    def line(self, key: str) -> int:
        """Return the line of this key, or of the nearest key above it that exists."""
        while key and key not in self.lines:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return self.lines.get(key, 1)


# Measured before: chains of merge keys were not read after 20 s. A few aliases of a long text outgrew the memory.
# Measured with it: every such file that was tried is refused within 0.6 s and 40 MiB.
class _SizeLimit(Composer):
    """Counts the expanded size of a document before it is built."""

    def __init__(self) -> None:
        Composer.__init__(self)
        self._values = self._characters = self._aliases = self._depth = 0
        self._weights: dict[str, tuple[int, int]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[attr-defined]
        if isinstance(event, yaml.AliasEvent):
            self._repeat(event)
            return super().compose_node(parent, index)
        before = self._values, self._characters
        self._count(event, 1, len(event.value) if isinstance(event, yaml.ScalarEvent) else 0)
        self._depth += 1
        if self._depth > DEEPEST:
            raise TooLargeError(f"is nested deeper than {DEEPEST} levels", event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if event.anchor is not None:
            self._weights[event.anchor] = self._values - before[0], self._characters - before[1]
        return node

    def compose_scalar_node(self, anchor: Any) -> Any:
        node = super().compose_scalar_node(anchor)
        if len(node.value) > LONGEST_TEXT:
            raise TooLargeError(f"has a string of more than {LONGEST_TEXT} characters", node.start_mark)
        if node.tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
            raise TooLargeError(f"has a number of more than {LONGEST_NUMBER} digits", node.start_mark)
        return node

    def _repeat(self, event: Any) -> None:
        """Count an alias as the size of what it repeats."""
        self._aliases += 1
        if self._aliases > MOST_ALIASES:
            raise TooLargeError(f"has more than {MOST_ALIASES} aliases", event.start_mark)
        if event.anchor in self._weights:
            self._count(event, *self._weights[event.anchor])
        # YAML allows such a value, which never ends for a reader that follows it.
        elif event.anchor in self.anchors:
            raise TooLargeError("has an alias inside its own anchor", event.start_mark)

    def _count(self, event: Any, values: int, characters: int) -> None:
        self._values += values
        self._characters += characters
        repeated = ", with the copies that aliases make" if self._aliases else ""
        if self._values > MOST_VALUES:
            raise TooLargeError(f"has more than {MOST_VALUES} values{repeated}", event.start_mark)
        if self._characters > MOST_CHARACTERS:
            raise TooLargeError(f"has more than {MOST_CHARACTERS} characters{repeated}", event.start_mark)


class _Constructor(SafeConstructor):
    """Reports a value that Python cannot build as a fault with its place, whatever the exception was."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception as error:
            raise ConstructorError(None, None, "has a value that cannot be read", node.start_mark) from error


class _Loader(_SizeLimit, _Constructor, yaml.SafeLoader):
    """Loads with Python's own parser on every machine.

    libyaml is six times as fast, but accepts and refuses other files (`{a:}`, tabs): a file would be valid on one
    machine and not on the next.
    """

    def __init__(self, text: str) -> None:
        # PyYAML: SafeLoader builds plain values only, never a Python object that a file names.
        yaml.SafeLoader.__init__(self, text)
        _SizeLimit.__init__(self)


def load(text: str) -> YamlDocument:
    loader: Any = _Loader(text)
    try:
        root = loader.get_single_node()
        found = YamlDocument()
        for path, line in _walk(root, "", set()):
            if path in found.lines:
                found.duplicates.append(path)
            found.lines[path] = line
        found.content = loader.construct_document(root) if root is not None else None
    finally:
        loader.dispose()
    return found


def _walk(root: Any, path: str, seen: set[int]) -> Iterator[tuple[str, int]]:
    """Yield every key with its line, before merge keys are resolved: an overridden key is not a duplicate."""
    length = 0
    for found, mark in _keys(root, path, seen):
        length += len(found)
        if length > MOST_OF_PLACES:
            raise TooLargeError("has keys whose names are too long in all", mark)
        yield found, mark.line + 1


def _keys(node: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield the keys below a node. What an alias repeats is visited once."""
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                below = f"{path}.{key.value}" if path else str(key.value)
                yield below, key.start_mark
                yield from _keys(value, below, seen)
    else:
        for number, value in enumerate(node.value):
            yield f"{path}[{number}]", value.start_mark
            yield from _keys(value, f"{path}[{number}]", seen)
