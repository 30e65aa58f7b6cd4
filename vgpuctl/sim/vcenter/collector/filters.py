"""One property filter: the properties that it selects, and the changes that its client has not received yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from vgpuctl.sim.vcenter.collector.partial_updates import Change, element_changes
from vgpuctl.sim.vcenter.collector.selection import Selection, UnknownSelection
from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.objects import InventoryObject
from vgpuctl.sim.vcenter.inventory.permissions import SYSTEM_VIEW, Privileges
from vgpuctl.sim.vcenter.inventory.property_cache import Key
from vgpuctl.sim.vcenter.wire import faults, rights
from vgpuctl.sim.vcenter.wire.metadata import UnknownPath, check_path, wire_name
from vgpuctl.sim.vcenter.wire.serialiser import Xml, element, reference, serialise, text
from vgpuctl.sim.vcenter.wire.sessions import Session
from vgpuctl.sim.vcenter.wire.vmomi import vmodl

_MAX_TRAVERSALS = 256
"""More than any client needs. Without a bound, each could be followed from each object of the inventory."""
Values = dict[str, Xml]
Changed = Mapping[str, Xml | None]


class Missing(Xml):
    """Stands for the value of a property that this user may not read."""

    __slots__ = ()


class SelectedPaths(NamedTuple):
    """For one type of object: the properties to read, and those that its reader lacks a privilege for."""

    keys: list[Key]
    missing: list[tuple[str, str]]


@dataclass
class FilterScope:
    """A filter's specification, checked, and what it reads."""

    center: Center
    session: Session
    version: Any
    spec: Any
    selection: Selection = field(init=False)
    _paths_by_type: dict[tuple[Any, Privileges], SelectedPaths | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self.spec)
        found = []
        for spec in self.spec.objectSet:
            if self.center.find(spec.obj, self.session):
                found.append(spec)
            # vSphere API: ManagedObjectNotFound, unless the filter asks for missing objects in its results.
            elif not self.spec.reportMissingObjectsInResults:
                raise faults.not_found(spec.obj)
        try:
            self.selection = Selection(found, self._follow)
        except UnknownSelection as unknown:
            raise faults.invalid_argument(f"specSet.selectSet.name {unknown}") from unknown

    def values(self, moid: str) -> tuple[InventoryObject, Values] | None:
        """Return the set properties of one selected object; None if no PropertySpec names its type, or if the user
        does not see it.
        """
        ref = self.selection.refs.get(moid)
        obj = self.center.find(ref, self.session) if ref else None
        if not obj:
            return None
        granted = self.center.privileges_on(obj.ref, self.session)
        paths = self._selected_paths(obj, granted) if SYSTEM_VIEW in granted else None
        if paths is None:
            return None
        values: Values = {path: self._missing(obj.ref, path, lacking) for path, lacking in paths.missing}
        for key in paths.keys:
            xml = self._xml(obj, key)
            # Measured with vcsim 0.56: an unset property is neither in propSet nor in missingSet.
            if xml is not None:
                values[key[0]] = xml
        return obj, values

    def _xml(self, obj: InventoryObject, key: Key) -> Xml | None:
        try:
            return self.center.xml(obj, key, self.session)
        except UnknownPath:
            # vSphere API: an unknown path is InvalidProperty. vcsim 0.56 puts it into missingSet (measured).
            raise faults.invalid_property(key[0]) from None

    def _missing(self, ref: Any, path: str, privilege: str) -> Missing:
        # vSphere API: missingSet names properties that the session may not read, each with its fault.
        kind = vmodl.query.PropertyCollector.MissingProperty
        lacking = kind(path=path, fault=faults.no_permission(ref, privilege))
        return Missing(serialise("missingSet", lacking, kind, self.version))

    def _follow(self, ref: Any, path: str) -> Any:
        obj = self.center.find(ref, self.session)
        # vSphere: a walk does not go through what the user does not see.
        if not obj or SYSTEM_VIEW not in self.center.privileges_on(ref, self.session):
            return None
        try:
            return self.center.read(obj, path, self.session)
        except UnknownPath:
            raise faults.invalid_property(path) from None

    def _selected_paths(self, obj: InventoryObject, granted: Privileges) -> SelectedPaths | None:
        """Return the union of all PropertySpecs that name the object's type or one of its ancestors."""
        kind = type(obj.ref)
        if (kind, granted) not in self._paths_by_type:
            # Measured with govc 0.56: one look-up names ManagedEntity and VirtualMachine, so both specs count.
            specs = [spec for spec in self.spec.propSet if issubclass(kind, spec.type)]
            paths = [path for spec in specs for path in (obj.table.names() if spec.all else spec.pathSet)]
            needed = {path: rights.privilege_to_read(kind, path) for path in paths}
            lacking = {path: privilege for path, privilege in needed.items() if privilege and privilege not in granted}
            keys = [(path, self.version) for path in needed if path not in lacking]
            self._paths_by_type[kind, granted] = SelectedPaths(keys, list(lacking.items())) if specs else None
        return self._paths_by_type[kind, granted]


@dataclass
class Filter:
    """One filter. `partial`: for a change inside a property, only the changed part is sent."""

    ref: Any
    scope: FilterScope
    partial: bool = False
    _known: dict[str, tuple[Any, Values]] = field(default_factory=dict)
    _touched: dict[str, None] = field(default_factory=dict)
    _dirty: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Send everything again: the client has received nothing."""
        self._known.clear()
        self._refresh_selection()
        self._dirty = dict.fromkeys(self.scope.selection.selected)

    def mark_changed(self, moid: str) -> bool:
        """Note that an object changed; return True if this filter selects or passes it."""
        if not self.scope.selection.concerns(moid):
            return False
        # Measured with 10,000 VMs: a filter that walks over everything takes 12 ms for each update.
        self._touched[moid] = None
        return True

    def drain(self, limit: int | None) -> tuple[list[Xml], bool]:
        """Return the updates of up to `limit` objects, and whether there are more."""
        self._refresh_selection()
        updates: list[Xml] = []
        while self._dirty and (limit is None or len(updates) < limit):
            moid = next(iter(self._dirty))
            del self._dirty[moid]
            updates += self._update(moid)
        return updates, bool(self._dirty)

    def _refresh_selection(self) -> None:
        for moid in self._touched:
            self._dirty[moid] = None
            self._dirty.update(self.scope.selection.refresh(moid))
        self._touched.clear()

    def _update(self, moid: str) -> Iterator[Xml]:
        selected = moid in self.scope.selection.selected
        found = self.scope.values(moid) if selected else None
        known = self._known.pop(moid, None)
        if found:
            obj, values = found
            self._known[moid] = (obj.ref, values)
            if not known:
                yield _object_update("enter", obj.ref, values)
            elif changed := _difference(known[1], values):
                yield _object_update("modify", obj.ref, changed, known[1] if self.partial else {})
        elif known:
            yield _object_update("leave", known[0], {})


def _difference(before: Values, after: Values) -> Changed:
    changed: Changed = {path: xml for path, xml in after.items() if before.get(path) != xml}
    return {**changed, **dict.fromkeys(before.keys() - after.keys())}


def _object_update(kind: str, ref: Any, values: Changed, before: Changed = MappingProxyType({})) -> Xml:
    """Return one object's update. With the values `before`, changes inside them are sent as partial updates."""
    readable = (change for path, xml in _readable(values) for change in _changes(path, before.get(path), xml))
    changes = [f"<changeSet>{_name_element(path)}<op>{op}</op>{xml}</changeSet>" for path, op, xml in readable]
    return element("objectSet", text("kind", kind), reference("obj", ref), *changes, *_missing(values))


def _changes(path: str, before: Xml | None, after: Xml | None) -> Iterable[Change]:
    if before is None or after is None or isinstance(before, Missing):
        return (Change(path, "assign", after or Xml()),)
    return element_changes(path, before, after)


def object_content(name: str, obj: InventoryObject, values: Values) -> Xml:
    properties = [f"<propSet>{_name_element(path)}{xml}</propSet>" for path, xml in _readable(values)]
    return element(name, reference("obj", obj.ref), *properties, *_missing(values))


@lru_cache(maxsize=1024)
def _name_element(path: str) -> Xml:
    return text("name", path)


def _readable(values: Changed) -> list[tuple[str, Xml | None]]:
    return [(path, xml) for path, xml in values.items() if not isinstance(xml, Missing)]


def _missing(values: Changed) -> list[Xml]:
    return [xml for xml in values.values() if isinstance(xml, Missing)]


def _check(spec: Any) -> None:
    for properties in spec.propSet:
        for path in properties.pathSet:
            # vSphere API: CreateFilter answers InvalidProperty, even if no object of that type is selected.
            _check_path(properties.type, path)
    for each in spec.objectSet:
        traversals = list(_traversals(each.selectSet))
        if len(traversals) > _MAX_TRAVERSALS:
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
