"""Managed objects: a reference, what stands behind it, and a table that reads its properties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from vgpuctl.sim.vcenter.wire.metadata import property_type, steps_of, typed, walk

Reader = Callable[[Any, Any], Any]
Writer = Callable[[Any, Any], Any]
"""From the subject and the version of the API to XML."""


@dataclass(eq=False, slots=True)
class PropertyTable:
    """Readers by path. A leaf may have its own reader beside its whole structure's: cheap, and it must say the same."""

    readers: dict[str, Reader] = field(default_factory=dict)
    writers: dict[str, Writer] = field(default_factory=dict)

    def __call__(self, *paths: str) -> Callable[[Reader], Reader]:
        def remember(reader: Reader) -> Reader:
            self.readers.update(dict.fromkeys(paths, reader))
            return reader

        return remember

    def written(self, path: str) -> Callable[[Writer], Writer]:
        """A short cut past the value itself; it must say what the reader's value says."""

        def remember(writer: Writer) -> Writer:
            self.writers[path] = writer
            return writer

        return remember

    def nearest(self, path: str) -> tuple[str, list[str]] | None:
        """The longest path with a reader, and the steps from there; none where this property is never set."""
        steps = steps_of(path)
        for length in range(len(steps), 0, -1):
            head = ".".join(steps[:length])
            if head in self.readers:
                return head, steps[length:]
        return None

    def names(self) -> list[str]:
        return [path for path in self.readers if "." not in path]


MANAGERS: dict[str, PropertyTable] = defaultdict(PropertyTable)
"""The service's managers by their ids: those that have properties here, and those that have none."""


@dataclass(frozen=True, slots=True, eq=False)
class Thing:
    ref: Any
    table: PropertyTable
    subject: Any

    @property
    def moid(self) -> str:
        return str(self.ref._moId)


def read(thing: Thing, path: str, context: Any) -> Any:
    """One property's value as its declared type; None where it is unset."""
    found = _route(thing.table, path)
    if found is None:
        return None
    head, steps = found
    kind: Any = type(thing.ref)
    value = typed(thing.table.readers[head](context, thing.subject), _declared(kind, head))
    return typed(*walk(value, steps)) if steps else value


@lru_cache(maxsize=4096)
def _route(table: PropertyTable, path: str) -> tuple[str, list[str]] | None:
    return table.nearest(path)


@lru_cache(maxsize=4096)
def _declared(kind: Any, path: str) -> Any:
    for step in path.split("."):
        kind = property_type(kind, step)
    return kind
