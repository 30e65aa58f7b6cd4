"""Managed objects: a reference, the state behind it, and a table that reads its properties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from vgpuctl.sim.vcenter.wire.metadata import property_type, steps_of, typed, walk

Reader = Callable[[Any, Any], Any]
Writer = Callable[[Any, Any], Any]
"""Turns the subject into XML for a version of the API."""


@dataclass(eq=False, slots=True)
class PropertyTable:
    """Readers by path. A field may have its own reader beside its whole structure's: it is faster, and must return the
    same.
    """

    readers: dict[str, Reader] = field(default_factory=dict)
    writers: dict[str, Writer] = field(default_factory=dict)

    def __call__(self, *paths: str) -> Callable[[Reader], Reader]:
        def remember(reader: Reader) -> Reader:
            self.readers.update(dict.fromkeys(paths, reader))
            return reader

        return remember

    def written(self, path: str) -> Callable[[Writer], Writer]:
        """Register a function that writes a property's XML directly. It must write the value that the
        reader returns.
        """

        def remember(writer: Writer) -> Writer:
            self.writers[path] = writer
            return writer

        return remember

    def nearest(self, path: str) -> tuple[str, list[str]] | None:
        """Return the longest path with a reader and the remaining steps; None if the property is never set."""
        steps = steps_of(path)
        for length in range(len(steps), 0, -1):
            head = ".".join(steps[:length])
            if head in self.readers:
                return head, steps[length:]
        return None

    def names(self) -> list[str]:
        return [path for path in self.readers if "." not in path]


MANAGERS: dict[str, PropertyTable] = defaultdict(PropertyTable)
"""The service's managers by id, with or without properties here."""


@dataclass(frozen=True, slots=True, eq=False)
class InventoryObject:
    ref: Any
    table: PropertyTable
    subject: Any

    @property
    def moid(self) -> str:
        return str(self.ref._moId)


def read(obj: InventoryObject, path: str, context: Any) -> Any:
    """Return one property's value as its declared type; None if it is unset."""
    found = _route(obj.table, path)
    if found is None:
        return None
    head, steps = found
    kind: Any = type(obj.ref)
    value = typed(obj.table.readers[head](context, obj.subject), _declared(kind, head))
    # vSphere API: a client may ask for a leaf of a structure, such as `runtime.powerState`.
    return typed(*walk(value, steps)) if steps else value


@lru_cache(maxsize=4096)
def _route(table: PropertyTable, path: str) -> tuple[str, list[str]] | None:
    return table.nearest(path)


@lru_cache(maxsize=4096)
def _declared(kind: Any, path: str) -> Any:
    for step in path.split("."):
        kind = property_type(kind, step)
    return kind
