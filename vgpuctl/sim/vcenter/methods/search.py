"""The SearchIndex: finds objects without a property collector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.permissions import SYSTEM_VIEW
from vgpuctl.sim.vcenter.methods.view import children_of
from vgpuctl.sim.vcenter.physics.records import Host, Vm
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles


@handles("FindByInventoryPath")
def find_by_inventory_path(call: Call, path: str) -> Any:
    found = refs.ROOT
    for name in filter(None, path.split("/")):
        found = _child(call.center, found, name)
        if found is None:
            return None
    return _if_seen(call, found)


@handles("FindChild")
def find_child(call: Call, entity: Any, name: str) -> Any:
    if not call.center.find(entity, call.session):
        raise faults.not_found(entity)
    return _if_seen(call, _child(call.center, entity, name))


@handles("FindByUuid")
def find_by_uuid(call: Call, datacenter: Any, uuid: str, is_vm: bool, by_instance: bool | None) -> Any:
    return next(iter(_with_uuid(call, datacenter, (uuid, is_vm, bool(by_instance)))), None)


@handles("FindAllByUuid")
def find_all_by_uuid(call: Call, datacenter: Any, uuid: str, is_vm: bool, by_instance: bool | None) -> Any:
    return _with_uuid(call, datacenter, (uuid, is_vm, bool(by_instance)))


@handles("FindByDnsName")
def find_by_dns_name(call: Call, datacenter: Any, name: str, is_vm: bool) -> Any:
    return next(iter(_with_dns_name(call, datacenter, name, is_vm)), None)


@handles("FindAllByDnsName")
def find_all_by_dns_name(call: Call, datacenter: Any, name: str, is_vm: bool) -> Any:
    return _with_dns_name(call, datacenter, name, is_vm)


def _within(call: Call, datacenter: Any, subjects: Iterable[Vm | Host]) -> Iterator[Vm | Host]:
    """Yield the VMs or hosts of this datacenter; all of them if none is given."""
    if datacenter is not None and not call.center.find(datacenter, call.session):
        raise faults.not_found(datacenter)
    for subject in subjects:
        host = subject.host if isinstance(subject, Vm) else subject
        if datacenter in (None, refs.of(host.cluster.datacenter)):
            yield subject


def _with_dns_name(call: Call, datacenter: Any, name: str, is_vm: bool) -> list[Any]:
    estate = call.center.estate
    # vSphere API: a VM's DNS name is the one that VMware Tools report, so the guest's own.
    found = estate.vms.get(name) if is_vm else estate.hosts.get(name)
    wanted = (refs.of(subject) for subject in _within(call, datacenter, [found] if found else []))
    return [ref for ref in wanted if _if_seen(call, ref)]


def _with_uuid(call: Call, datacenter: Any, wanted: tuple[str, bool, bool]) -> list[Any]:
    uuid, is_vm, by_instance = wanted
    # vSphere API: FindByUuid means the BIOS uuid, unless `instanceUuid` is set.
    path = "config.instanceUuid" if by_instance else "config.uuid"
    if not is_vm:
        path = "hardware.systemInfo.uuid"
    estate = call.center.estate
    for subject in _within(call, datacenter, estate.vms.values() if is_vm else estate.hosts.values()):
        ref = refs.of(subject)
        obj = call.center.find(ref, None)
        if obj and str(call.center.read(obj, path, None)).lower() == uuid.lower():
            return [ref] if _if_seen(call, ref) else []
    return []


def _if_seen(call: Call, ref: Any) -> Any:
    """Return the object, or None if the user does not see it."""
    # vSphere API: the search needs System.View on what it finds.
    granted = call.center.privileges_on(ref, call.required_session) if ref is not None else ()
    return ref if SYSTEM_VIEW in granted else None


def _child(center: Center, parent: Any, name: str) -> Any:
    folder = next((each for each in center.estate.places.vm_folders if each.moid == parent._moId), None)
    # VMs may be ten thousand, and other children are few.
    if folder:
        child = folder.vms.get(name) or folder.folders.get(name)
        return refs.of(child) if child else None
    for ref in children_of(center, parent):
        obj = center.find(ref, None)
        if obj and center.read(obj, "name", None) == name:
            return ref
    return None
