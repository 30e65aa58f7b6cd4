"""Loads YAML as people write it by hand: no aliases, and bounds on depth, length and the number of values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

MAX_BYTES = 768 * 1024
#: Measured in the product's reader: aliases and ranges let a small file stand for more than memory holds.
MOST_VALUES, DEEPEST, LONGEST_TEXT, LONGEST_NUMBER = 20_000, 16, 4096, 64
_NUMBERS = {f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp")}


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        mark: Any = event.start_mark
        self._values += 1
        self._depth += 1
        # A few aliases of a long text took more memory than the machine allowed (measured).
        if isinstance(event, yaml.AliasEvent):
            raise ComposerError(None, None, "aliases are not known here", mark)
        if self._values > MOST_VALUES:
            raise ComposerError(None, None, f"more than {MOST_VALUES} values", mark)
        if self._depth > DEEPEST:
            raise ComposerError(None, None, f"nested deeper than {DEEPEST}", mark)
        node: Any = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.ScalarNode):
            longest = LONGEST_NUMBER if node.tag in _NUMBERS else LONGEST_TEXT
            if len(node.value) > longest:
                raise ComposerError(None, None, f"more than {longest} characters", mark)
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception as error:
            raise ConstructorError(None, None, "cannot be read", node.start_mark) from error


@dataclass(slots=True)
class Loaded:
    """A document. `lines`: the line of each key, such as `hosts[0].name`. `twice`: keys of which YAML drops all but the
    last.
    """

    data: Any = None
    lines: dict[str, int] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)

    def note_lines(self, node: yaml.Node | None, key: str = "") -> None:
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                inner = f"{key}.{name.value}" if key else str(name.value)
                if inner in self.lines:
                    self.twice.append(inner)
                self.lines[inner] = name.start_mark.line + 1
                self.note_lines(value, inner)
        elif isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self.lines[f"{key}[{number}]"] = item.start_mark.line + 1
                self.note_lines(item, f"{key}[{number}]")


def load(data: bytes) -> Loaded:
    """Return the document. Raise YAMLError, whose text names the line, if it is not YAML or exceeds a bound."""
    if len(data) > MAX_BYTES:
        raise _at(data.count(b"\n", 0, MAX_BYTES), f"larger than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _at(data.count(b"\n", 0, error.start), "no UTF-8 text") from None
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        raise _at(text.count("\n", 0, error.position), "a control character") from None
    try:
        node = loader.get_single_node()
        loaded = Loaded()
        loaded.note_lines(node)
        loaded.data = None if node is None else loader.construct_document(node)
        return loaded
    finally:
        loader.dispose()


def _at(line: int, problem: str) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(None, None, problem, yaml.Mark("it", 0, line, 0, None, 0))
