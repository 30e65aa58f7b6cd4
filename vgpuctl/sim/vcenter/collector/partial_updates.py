"""Partial updates: for an array whose elements have keys, only the elements that changed.

How deep vCenter goes inside an element is inferred. Here it is one step, and only for parts that are data objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from vgpuctl.sim.vcenter.wire.metadata import UnknownPath, property_type, wire_name, wire_type
from vgpuctl.sim.vcenter.wire.serialiser import Xml
from vgpuctl.sim.vcenter.wire.vmomi import support

_ELEMENT = re.compile(r"<(\w+)([^>]*)>(.*?)</\1>", re.DOTALL)
"""An XML element: its name, its attributes and its content. No element here contains another of its own name."""
_TYPE = re.compile(r'xsi:type="(\w+)"')


class Element(NamedTuple):
    name: str
    attributes: str
    inside: str

    @property
    def kind(self) -> str:
        """The element's type, if it is given."""
        declared = _TYPE.search(self.attributes)
        return declared[1] if declared else ""

    def as_value(self, kind: str) -> Xml:
        return Xml(f'<val xsi:type="{self.kind or kind}">{self.inside}</val>')


class Change(NamedTuple):
    """One change. `value` is a `<val>`, or empty where something was removed."""

    path: str
    op: str
    value: Xml


def element_changes(path: str, before: Xml, after: Xml) -> Iterator[Change]:
    """Return the changes of a property from `before` to `after`."""
    known, now = _by_key(before), _by_key(after)
    if not known or not now:
        yield Change(path, "assign", after)
        return
    for key in known.keys() - now.keys():
        # vSphere API: `add`, `remove` and `assign` are a change's operations; an element's path ends in its key.
        yield Change(_keyed_path(path, key), "remove", Xml())
    for key, element in now.items():
        if key not in known:
            yield Change(_keyed_path(path, key), "add", element.as_value(element.name))
        elif known[key] != element:
            yield from _part_changes(_keyed_path(path, key), known[key], element)


def _part_changes(path: str, before: Element, after: Element) -> Iterator[Change]:
    """Return the changed parts of an element, if they can be sent alone; else the whole element."""
    old, new = _parts(before.inside), _parts(after.inside)
    changed = {name: part for name, part in new.items() if old.get(name) != part}
    kinds = {name: _kind_of_part(after.kind, name) for name in changed}
    if before.attributes != after.attributes or old.keys() != new.keys() or not all(kinds.values()):
        yield Change(path, "assign", after.as_value(after.name))
        return
    # Decision 0010: each change of power connects or disconnects network cards.
    # Without parts, all devices of the VM would be sent again.
    for name, part in changed.items():
        yield Change(f"{path}.{name}", "assign", part.as_value(kinds[name]))


def _keyed_path(path: str, key: str) -> str:
    # vSphere API: text keys are quoted in paths, as in foo.arProp["key val"].
    # A number needs no quotes: vcsim 0.56 reads `config.hardware.device[205]` (measured).
    return f"{path}[{key}]" if key.removeprefix("-").isdecimal() else f'{path}["{key}"]'


@lru_cache(maxsize=1024)
def _by_key(value: str) -> Mapping[str, Element]:
    """Return an array's elements by key; nothing if it is not an array of elements with keys.

    Cached, because the value after one change is the value before the next.
    """
    whole = _ELEMENT.fullmatch(value)
    if not whole or not Element(*whole.groups()).kind.startswith("ArrayOf"):
        return {}
    found = [Element(*each) for each in _ELEMENT.findall(whole[3])]
    keys = [part["key"].inside if "key" in (part := _parts(each.inside)) else "" for each in found]
    return dict(zip(keys, found, strict=True)) if all(keys) else {}


def _parts(inside: str) -> dict[str, Element]:
    return {each[0]: Element(*each) for each in _ELEMENT.findall(inside)}


def _kind_of_part(kind: str, part: str) -> str:
    """Return the name of a part's declared type, or "" if that type has no parts."""
    try:
        declared = property_type(wire_type(kind), part)
    except (KeyError, UnknownPath):
        return ""
    return wire_name(declared) if issubclass(declared, support.DataObject) else ""
