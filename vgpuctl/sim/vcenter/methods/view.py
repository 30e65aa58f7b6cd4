"""Views: sets of objects that a filter may start from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.things import PropertyTable, Thing
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, answers
from vgpuctl.sim.vcenter.wire.vmomi import vim

VIEW = PropertyTable()
LIST_VIEW = PropertyTable()
_CHILDREN = ("childEntity", "vmFolder", "hostFolder", "datastoreFolder", "networkFolder", "host", "resourcePool", "vm")


@dataclass(slots=True)
class Container:
    """A view's own wishes; its contents follow the inventory."""

    center: Center
    container: Any
    type: list[Any]
    recursive: bool

    @property
    def view(self) -> list[Any]:
        inside = self.center.while_vms_stay(
            (self.container._moId, self.recursive), lambda: _inside(self.center, self.container, self.recursive)
        )
        wanted = tuple(self.type)
        return [ref for ref in inside if isinstance(ref, wanted)] if wanted else inside


@answers("CreateContainerView")
def create_container_view(call: Call, container: Any, kinds: list[Any], recursive: bool) -> Any:
    if not call.center.find(container, call.session):
        raise faults.not_found(container)
    ref = vim.view.ContainerView(call.member.fresh_moid("ContainerView"))
    return call.member.add(Thing(ref, VIEW, Container(call.center, container, kinds, bool(recursive))))


@answers("DestroyView")
def destroy_view(call: Call) -> None:
    call.member.drop(call.thing.moid)
    call.center.tell(call.thing.moid)


@answers("CreateListView")
def create_list_view(call: Call, objects: list[Any]) -> Any:
    found, _ = _found(call, objects)
    ref = vim.view.ListView(call.member.fresh_moid("ListView"))
    return call.member.add(Thing(ref, LIST_VIEW, {"view": found}))


@answers("ModifyListView")
def modify_list_view(call: Call, added: list[Any], removed: list[Any]) -> Any:
    """The answer names those that could not be found."""
    found, unresolved = _found(call, added)
    gone = {ref._moId for ref in (*removed, *found)}
    kept = [ref for ref in call.subject["view"] if ref._moId not in gone]
    call.subject["view"] = kept + found
    call.center.tell(call.thing.moid)
    return unresolved


@answers("ResetListView")
def reset_list_view(call: Call, objects: list[Any]) -> Any:
    return modify_list_view(call, objects, call.subject["view"])


def _found(call: Call, refs: list[Any]) -> tuple[list[Any], list[Any]]:
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


def _inside(center: Center, container: Any, recursive: bool) -> list[Any]:
    """All entities below one, each once: the VMs below a cluster hang on its pool and on its hosts."""
    found: dict[str, Any] = {}
    waiting = deque(children_of(center, container))
    while waiting:
        ref = waiting.popleft()
        if ref._moId not in found:
            found[ref._moId] = ref
            waiting.extend(children_of(center, ref) if recursive else ())
    return list(found.values())


def children_of(center: Center, ref: Any) -> Iterator[Any]:
    if isinstance(ref, vim.VirtualMachine):
        return
    thing = center.find(ref, None)
    names = [name for name in _CHILDREN if thing and name in thing.table.readers]
    is_below: dict[str, Any] = {"host": vim.ComputeResource, "vm": (vim.ResourcePool, vim.HostSystem)}
    for name in names:
        if thing and isinstance(ref, is_below.get(name, object)):
            value = center.read(thing, name, None)
            yield from value if isinstance(value, list) else (value,)
