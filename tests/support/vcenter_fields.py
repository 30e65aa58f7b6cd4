"""Each property of vCenter's objects that we read, and each part of it, in turn replaced by nonsense."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from pyVmomi import VmomiSupport, vim

from tests.support.fields import MISSING, Estate, Field, Path
from vgpuctl.model.fleet import Task
from vgpuctl.model.hosts import Host
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.vsphere import property_filters
from vgpuctl.vsphere.inventory_cache import InventoryCache
from vgpuctl.vsphere.views import Vm

#: Deeper than this, no view looks.
DEEPEST = 5
VM_PATHS = [
    *("name", *property_filters.VM_PATHS, *property_filters.VM_MMIO_PATHS, *property_filters.VM_STORE_PATHS),
    "summary.config.memoryReservation",
]


class VcenterEstate(Estate):
    """The same day, with vCenter's properties as they arrive. `properties`: by the kind and the id of their object."""

    def __init__(self) -> None:
        super().__init__()
        self._world.estate.power_off(self._world.estate.vms["worker-1"])
        self._world.wait(5)
        estate = self._world.estate
        host = next(iter(estate.hosts.values()))
        vms = [vim.VirtualMachine(estate.vms[name].moid) for name in ("worker-1", "worker-2", "infra-1")]
        tasks = [vim.Task(task.moid) for task in estate.vms["worker-1"].recent_tasks]
        self.properties: dict[Any, dict[str, Any]] = {}
        for paths, objects in (
            (property_filters.HOST_PATHS, [vim.HostSystem(host.moid) for host in estate.hosts.values()]),
            (["name", property_filters.CLUSTER_SETTINGS], [refs.of(host.cluster)]),
            (property_filters.STORE_PATHS, [refs.of(store) for store in estate.vms["worker-1"].stores]),
            (VM_PATHS, vms),
            (property_filters.TASK_PATHS, tasks[:1]),
        ):
            for each in objects:
                self.properties[each] = self._read(each._moId, paths)
        self._taken(None, (), None)

    def fields(self) -> list[Field]:
        found = []
        for each, properties in self.properties.items():
            kind = type(each).__name__.rsplit(".", 1)[-1]
            for path in parts_of(properties):
                found.append(Field(kind, each._moId, path))
        return found

    def replaced(self, field: Field, nonsense: Any) -> str:
        """What is then shown and planned."""
        self._taken(field.name, field.path, nonsense)
        shown = self.look()
        self.unread = [each.name for each in self.vcenter.unreadable_by_id().values()]
        return shown

    def _taken(self, moid: str | None, path: Path, nonsense: Any) -> None:
        cache = InventoryCache()
        for each, properties in self.properties.items():
            given = with_nonsense(properties, path, nonsense) if each._moId == moid else properties
            changes = [SimpleNamespace(name=name, op="assign", val=value) for name, value in given.items()]
            cache.apply(SimpleNamespace(obj=each, kind="enter", changeSet=changes))
        self.vcenter = Seen(cache)

    def _read(self, moid: str, paths: list[str]) -> dict[str, Any]:
        center = self._world.center
        thing = center._by_moid(moid, None)
        assert thing
        found = {path: center.read(thing, path, None) for path in paths}
        return {path: value for path, value in found.items() if value is not None}


class Seen:
    """What is known of vCenter."""

    def __init__(self, cache: InventoryCache) -> None:
        self._cache = cache

    def vms(self) -> dict[str, Vm]:
        return self._cache.vms()

    def hosts(self) -> dict[str, Host]:
        return self._cache.hosts()

    def tasks(self) -> dict[str, tuple[Task, ...]]:
        return self._cache.tasks()

    def datastores(self) -> dict[str, int]:
        return self._cache.datastores()

    def unreadable_by_id(self) -> dict[str, Unreadable]:
        return self._cache.unreadable()


def parts_of(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every part: of dictionaries, of data objects, and the first and last element of each list."""
    if isinstance(value, list):
        entries = {number: value[number] for number in {0, len(value) - 1} if value}
    elif isinstance(value, VmomiSupport.DataObject):
        entries = {each.name: getattr(value, each.name) for each in value._GetPropertyList()}
    else:
        entries = value if isinstance(value, dict) else {}
    for key, inner in entries.items():
        yield (*path, key)
        if len(path) < DEEPEST:
            yield from parts_of(inner, (*path, key))


def with_nonsense(properties: dict[str, Any], path: Path, nonsense: Any) -> dict[str, Any]:
    """A copy with this part replaced, or without it; pyVmomi's own types refuse many a value that a server may send."""
    name, *inner = path
    found = dict(properties)
    if not inner:
        found.pop(str(name))
        return found if nonsense is MISSING else {**found, str(name): nonsense}
    inside = found[str(name)] = copy.deepcopy(properties[str(name)])
    for key in inner[:-1]:
        inside = inside[int(key)] if isinstance(inside, list) else getattr(inside, str(key))
    value = None if nonsense is MISSING else nonsense
    if isinstance(inside, list):
        inside[int(inner[-1])] = value
    else:
        inside.__dict__[str(inner[-1])] = value
    return found
