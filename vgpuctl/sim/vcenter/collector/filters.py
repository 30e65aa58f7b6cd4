"""One property filter: which properties of which objects, and what of them its client has not seen yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from vgpuctl.sim.vcenter.collector.partial_updates import Change, nested
from vgpuctl.sim.vcenter.collector.selection import Selection, UnknownSelection
from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.property_cache import Key
from vgpuctl.sim.vcenter.inventory.things import Thing
from vgpuctl.sim.vcenter.wire import faults, rights
from vgpuctl.sim.vcenter.wire.metadata import UnknownPath, check_path, wire_name
from vgpuctl.sim.vcenter.wire.serialiser import Xml, element, reference, serialise, text
from vgpuctl.sim.vcenter.wire.sessions import Session
from vgpuctl.sim.vcenter.wire.vmomi import vmodl

_MOST_TRAVERSALS = 256
"""More than any client needs: each may be followed from each object of the inventory."""
Values = dict[str, Xml]
Changed = Mapping[str, Xml | None]


class Missing(Xml):
    """In place of a property's value: that this user may not read it."""

    __slots__ = ()


class Wanted(NamedTuple):
    """Of each object of one type: what is read, and what its reader has no right to, with the right."""

    keys: list[Key]
    missing: list[tuple[str, str]]


@dataclass
class Scope:
    """A filter's specification, checked, and what is read by it."""

    center: Center
    session: Session
    version: Any
    spec: Any
    selection: Selection = field(init=False)
    _wanted: dict[Any, Wanted | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self.spec)
        there = []
        for spec in self.spec.objectSet:
            if self.center.find(spec.obj, self.session):
                there.append(spec)
            elif not self.spec.reportMissingObjectsInResults:
                raise faults.not_found(spec.obj)
        try:
            self.selection = Selection(there, self._follow)
        except UnknownSelection as unknown:
            raise faults.invalid_argument(f"specSet.selectSet.name {unknown}") from unknown

    def values(self, moid: str) -> tuple[Thing, Values] | None:
        """The set properties of one selected object; None where no PropertySpec speaks of its type."""
        ref = self.selection.refs.get(moid)
        thing = self.center.find(ref, self.session) if ref else None
        if not thing:
            return None
        wanted = self._wanted_of(thing)
        if wanted is None:
            return None
        values: Values = {path: self._missing(thing.ref, path, lacking) for path, lacking in wanted.missing}
        for key in wanted.keys:
            xml = self._xml(thing, key)
            if xml is not None:
                values[key[0]] = xml
        return thing, values

    def _xml(self, thing: Thing, key: Key) -> Xml | None:
        try:
            return self.center.xml(thing, key, self.session)
        except UnknownPath:
            raise faults.invalid_property(key[0]) from None

    def _missing(self, ref: Any, path: str, privilege: str) -> Missing:
        kind = vmodl.query.PropertyCollector.MissingProperty
        lacking = kind(path=path, fault=faults.no_permission(ref, privilege))
        return Missing(serialise("missingSet", lacking, kind, self.version))

    def _follow(self, ref: Any, path: str) -> Any:
        thing = self.center.find(ref, self.session)
        try:
            return self.center.read(thing, path, self.session) if thing else None
        except UnknownPath:
            raise faults.invalid_property(path) from None

    def _wanted_of(self, thing: Thing) -> Wanted | None:
        """The union of all PropertySpecs that name the object's type or one of its ancestors."""
        kind = type(thing.ref)
        if kind not in self._wanted:
            specs = [spec for spec in self.spec.propSet if issubclass(kind, spec.type)]
            paths = [path for spec in specs for path in (thing.table.names() if spec.all else spec.pathSet)]
            lacking = {path: rights.to_read(self.session, kind, path) for path in paths}
            keys = [(path, self.version) for path, privilege in lacking.items() if not privilege]
            missing = [(path, privilege) for path, privilege in lacking.items() if privilege]
            self._wanted[kind] = Wanted(keys, missing) if specs else None
        return self._wanted[kind]


@dataclass
class Filter:
    """`partial`: of a change inside a property only what changed is told."""

    ref: Any
    scope: Scope
    partial: bool = False
    _known: dict[str, tuple[Any, Values]] = field(default_factory=dict)
    _touched: dict[str, None] = field(default_factory=dict)
    _dirty: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Its client has seen nothing."""
        self._known.clear()
        self._follow_changes()
        self._dirty = dict.fromkeys(self.scope.selection.selected)

    def note(self, moid: str) -> bool:
        """Something has changed: does it concern this filter?"""
        if not self.scope.selection.concerns(moid):
            return False
        self._touched[moid] = None
        return True

    def drain(self, limit: int | None) -> tuple[list[Xml], bool]:
        """Up to `limit` objects' updates, and whether there are more."""
        self._follow_changes()
        updates: list[Xml] = []
        while self._dirty and (limit is None or len(updates) < limit):
            moid = next(iter(self._dirty))
            del self._dirty[moid]
            updates += self._update(moid)
        return updates, bool(self._dirty)

    def _follow_changes(self) -> None:
        for moid in self._touched:
            self._dirty[moid] = None
            self._dirty.update(self.scope.selection.refresh(moid))
        self._touched.clear()

    def _update(self, moid: str) -> Iterator[Xml]:
        selected = moid in self.scope.selection.selected
        found = self.scope.values(moid) if selected else None
        known = self._known.pop(moid, None)
        if found:
            thing, values = found
            self._known[moid] = (thing.ref, values)
            if not known:
                yield _object_update("enter", thing.ref, values)
            elif changed := _difference(known[1], values):
                yield _object_update("modify", thing.ref, changed, known[1] if self.partial else {})
        elif known:
            yield _object_update("leave", known[0], {})


def _difference(before: Values, after: Values) -> Changed:
    changed: Changed = {path: xml for path, xml in after.items() if before.get(path) != xml}
    return {**changed, **dict.fromkeys(before.keys() - after.keys())}


def _object_update(kind: str, ref: Any, values: Changed, before: Changed = MappingProxyType({})) -> Xml:
    """Told as it nests where it was there `before`."""
    told = (change for path, xml in _there(values) for change in _changes(path, before.get(path), xml))
    changes = [f"<changeSet>{_named(path)}<op>{op}</op>{xml}</changeSet>" for path, op, xml in told]
    return element("objectSet", text("kind", kind), reference("obj", ref), *changes, *_missing(values))


def _changes(path: str, before: Xml | None, after: Xml | None) -> Iterable[Change]:
    if before is None or after is None or isinstance(before, Missing):
        return (Change(path, "assign", after or Xml()),)
    return nested(path, before, after)


def object_content(name: str, thing: Thing, values: Values) -> Xml:
    properties = [f"<propSet>{_named(path)}{xml}</propSet>" for path, xml in _there(values)]
    return element(name, reference("obj", thing.ref), *properties, *_missing(values))


@lru_cache(maxsize=1024)
def _named(path: str) -> Xml:
    return text("name", path)


def _there(values: Changed) -> list[tuple[str, Xml | None]]:
    return [(path, xml) for path, xml in values.items() if not isinstance(xml, Missing)]


def _missing(values: Changed) -> list[Xml]:
    return [xml for xml in values.values() if isinstance(xml, Missing)]


def _check(spec: Any) -> None:
    for properties in spec.propSet:
        for path in properties.pathSet:
            _check_path(properties.type, path)
    for each in spec.objectSet:
        traversals = list(_traversals(each.selectSet))
        if len(traversals) > _MOST_TRAVERSALS:
            raise faults.invalid_argument("specSet.objectSet.selectSet")
        for traversal in traversals:
            _check_path(traversal.type, traversal.path)


def _check_path(kind: Any, path: str) -> None:
    try:
        check_path(kind, path)
    except UnknownPath:
        raise faults.invalid_property(path) from None


def _traversals(specs: Any) -> Iterator[Any]:
    for spec in specs:
        if wire_name(type(spec)) == "TraversalSpec":
            yield spec
            yield from _traversals(spec.selectSet)
