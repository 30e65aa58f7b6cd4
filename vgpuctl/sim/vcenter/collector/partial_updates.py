"""Changes told as they nest: of an array whose elements have keys, only the elements that changed.

How deep vCenter goes inside an element is inferred. Here it is one step, and only to what has parts of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from vgpuctl.sim.vcenter.wire.metadata import UnknownPath, property_type, wire_name, wire_type
from vgpuctl.sim.vcenter.wire.serialiser import Xml
from vgpuctl.sim.vcenter.wire.vmomi import support

_ONE = re.compile(r"<(\w+)([^>]*)>(.*?)</\1>", re.DOTALL)
"""An element: its name, its attributes and what is inside. None contains another of its own name."""
_TYPE = re.compile(r'xsi:type="(\w+)"')


class Element(NamedTuple):
    name: str
    attributes: str
    inside: str

    @property
    def kind(self) -> str:
        """Its type, where that is said."""
        said = _TYPE.search(self.attributes)
        return said[1] if said else ""

    def as_value(self, kind: str) -> Xml:
        return Xml(f'<val xsi:type="{self.kind or kind}">{self.inside}</val>')


class Change(NamedTuple):
    """`value`: a `<val>`; empty where something is gone."""

    path: str
    op: str
    value: Xml


def nested(path: str, before: Xml, after: Xml) -> Iterator[Change]:
    """What is told of a property that was `before` and is `after`."""
    known, now = _by_key(before), _by_key(after)
    if not known or not now:
        yield Change(path, "assign", after)
        return
    for key in known.keys() - now.keys():
        yield Change(_at(path, key), "remove", Xml())
    for key, element in now.items():
        if key not in known:
            yield Change(_at(path, key), "add", element.as_value(element.name))
        elif known[key] != element:
            yield from _inside(_at(path, key), known[key], element)


def _inside(path: str, before: Element, after: Element) -> Iterator[Change]:
    """The parts that changed, where they can be told alone; else the whole element."""
    old, new = _parts(before.inside), _parts(after.inside)
    changed = {name: part for name, part in new.items() if old.get(name) != part}
    kinds = {name: _kind_of_part(after.kind, name) for name in changed}
    if before.attributes != after.attributes or old.keys() != new.keys() or not all(kinds.values()):
        yield Change(path, "assign", after.as_value(after.name))
        return
    for name, part in changed.items():
        yield Change(f"{path}.{name}", "assign", part.as_value(kinds[name]))


def _at(path: str, key: str) -> str:
    return f"{path}[{key}]" if key.removeprefix("-").isdecimal() else f'{path}["{key}"]'


@lru_cache(maxsize=1024)
def _by_key(value: str) -> Mapping[str, Element]:
    """The elements of an array by their keys; none where it is no array of things that have some. Kept: what is told
    now is what it was before the next change."""
    whole = _ONE.fullmatch(value)
    if not whole or not Element(*whole.groups()).kind.startswith("ArrayOf"):
        return {}
    found = [Element(*each) for each in _ONE.findall(whole[3])]
    keys = [part["key"].inside if "key" in (part := _parts(each.inside)) else "" for each in found]
    return dict(zip(keys, found, strict=True)) if all(keys) else {}


def _parts(inside: str) -> dict[str, Element]:
    return {each[0]: Element(*each) for each in _ONE.findall(inside)}


def _kind_of_part(kind: str, part: str) -> str:
    """The name of its declared type; "" where that has no parts."""
    try:
        declared = property_type(wire_type(kind), part)
    except (KeyError, UnknownPath):
        return ""
    return wire_name(declared) if issubclass(declared, support.DataObject) else ""
