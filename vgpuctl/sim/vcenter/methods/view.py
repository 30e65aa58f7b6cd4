"""Views: sets of objects from which a filter may start."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.objects import InventoryObject, PropertyTable
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim

VIEW = PropertyTable()
LIST_VIEW = PropertyTable()
_CHILDREN = ("childEntity", "vmFolder", "hostFolder", "datastoreFolder", "networkFolder", "host", "resourcePool", "vm")


@dataclass(slots=True)
class Container:
    """The settings of a ContainerView. Its contents follow the inventory."""

    center: Center
    container: Any
    type: list[Any]
    recursive: bool

    @property
    def view(self) -> list[Any]:
        # The contents are read at each look of a filter that starts here, and change only with the inventory.
        entities = self.center.cached_until_vms_change(
            (self.container._moId, self.recursive), lambda: _entities_below(self.center, self.container, self.recursive)
        )
        wanted = tuple(self.type)
        # vSphere API: an empty list of types means all types.
        return [ref for ref in entities if isinstance(ref, wanted)] if wanted else entities


@handles("CreateContainerView")
def create_container_view(call: Call, container: Any, kinds: list[Any], recursive: bool) -> Any:
    if not call.center.find(container, call.session):
        raise faults.not_found(container)
    ref = vim.view.ContainerView(call.required_session.next_moid("ContainerView"))
    return call.required_session.add(
        InventoryObject(ref, VIEW, Container(call.center, container, kinds, bool(recursive)))
    )


@handles("DestroyView")
def destroy_view(call: Call) -> None:
    call.required_session.drop(call.target.moid)
    call.center.notify_changed(call.target.moid)


@handles("CreateListView")
def create_list_view(call: Call, objects: list[Any]) -> Any:
    found, _ = _find_all(call, objects)
    ref = vim.view.ListView(call.required_session.next_moid("ListView"))
    return call.required_session.add(InventoryObject(ref, LIST_VIEW, {"view": found}))


@handles("ModifyListView")
def modify_list_view(call: Call, added: list[Any], removed: list[Any]) -> Any:
    """Return the references that were not found."""
    found, unresolved = _find_all(call, added)
    gone = {ref._moId for ref in (*removed, *found)}
    remaining = [ref for ref in call.subject["view"] if ref._moId not in gone]
    call.subject["view"] = remaining + found
    call.center.notify_changed(call.target.moid)
    return unresolved


@handles("ResetListView")
def reset_list_view(call: Call, objects: list[Any]) -> Any:
    return modify_list_view(call, objects, call.subject["view"])


def _find_all(call: Call, refs: list[Any]) -> tuple[list[Any], list[Any]]:
    found: list[Any] = []
    unresolved: list[Any] = []
    for ref in refs:
        (found if call.center.find(ref, call.session) else unresolved).append(ref)
    return found, unresolved


def _view_property(path: str) -> None:
    VIEW(path)(lambda _, container: getattr(container, path))


for _path in ("container", "type", "recursive", "view"):
    _view_property(_path)


@LIST_VIEW("view")
def _listed(_: Any, subject: Any) -> Any:
    return subject["view"]


def _entities_below(center: Center, container: Any, recursive: bool) -> list[Any]:
    """Return all entities below one, each once: a cluster reaches its VMs through its pool and through its hosts."""
    found: dict[str, Any] = {}
    # vSphere API (CreateContainerView): a cluster's view has its hosts' and pools' VMs, recursive or not. vcsim leaves
    # them out. No pool here has pools below it.
    goes_on = recursive or isinstance(container, vim.ComputeResource)
    pending = deque(children_of(center, container))
    while pending:
        ref = pending.popleft()
        if ref._moId not in found:
            found[ref._moId] = ref
            pending.extend(children_of(center, ref) if goes_on else ())
    return list(found.values())


def children_of(center: Center, ref: Any) -> Iterator[Any]:
    if isinstance(ref, vim.VirtualMachine):
        return
    obj = center.find(ref, None)
    names = [name for name in _CHILDREN if obj and name in obj.table.readers]
    # vSphere API: a container view follows other properties for each type of container.
    is_below: dict[str, Any] = {"host": vim.ComputeResource, "vm": (vim.ResourcePool, vim.HostSystem)}
    for name in names:
        if obj and isinstance(ref, is_below.get(name, object)):
            value = center.read(obj, name, None)
            yield from value if isinstance(value, list) else (value,)
