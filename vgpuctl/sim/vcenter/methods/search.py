"""The SearchIndex: finds objects without a property collector."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.methods.view import children_of
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles


@handles("FindByInventoryPath")
def find_by_inventory_path(call: Call, path: str) -> Any:
    found = refs.ROOT
    for name in filter(None, path.split("/")):
        found = _child(call.center, found, name)
        if found is None:
            return None
    return found


@handles("FindChild")
def find_child(call: Call, entity: Any, name: str) -> Any:
    if not call.center.find(entity, call.session):
        raise faults.not_found(entity)
    return _child(call.center, entity, name)


@handles("FindByUuid")
def find_by_uuid(call: Call, datacenter: Any, uuid: str, is_vm: bool, by_instance: bool | None) -> Any:
    _require_datacenter(call, datacenter)
    return next(iter(_with_uuid(call, uuid, is_vm, by_instance)), None)


@handles("FindAllByUuid")
def find_all_by_uuid(call: Call, datacenter: Any, uuid: str, is_vm: bool, by_instance: bool | None) -> Any:
    _require_datacenter(call, datacenter)
    return _with_uuid(call, uuid, is_vm, by_instance)


@handles("FindByDnsName")
def find_by_dns_name(call: Call, datacenter: Any, name: str, is_vm: bool) -> Any:
    return next(iter(_with_dns_name(call, datacenter, name, is_vm)), None)


@handles("FindAllByDnsName")
def find_all_by_dns_name(call: Call, datacenter: Any, name: str, is_vm: bool) -> Any:
    return _with_dns_name(call, datacenter, name, is_vm)


def _require_datacenter(call: Call, datacenter: Any) -> None:
    """Refuse a datacenter that does not exist; there is only one."""
    if datacenter is not None and not call.center.find(datacenter, call.session):
        raise faults.not_found(datacenter)


def _with_dns_name(call: Call, datacenter: Any, name: str, is_vm: bool) -> list[Any]:
    _require_datacenter(call, datacenter)
    estate = call.center.estate
    found = estate.vms.get(name) if is_vm else estate.hosts.get(name)
    return [refs.of(found)] if found else []


def _with_uuid(call: Call, uuid: str, is_vm: bool, by_instance: bool | None) -> list[Any]:
    # vSphere API: FindByUuid means the BIOS uuid, unless `instanceUuid` is set.
    path = "config.instanceUuid" if by_instance else "config.uuid"
    if not is_vm:
        path = "hardware.systemInfo.uuid"
    estate = call.center.estate
    for subject in estate.vms.values() if is_vm else estate.hosts.values():
        ref = refs.of(subject)
        obj = call.center.find(ref, None)
        if obj and str(call.center.read(obj, path, None)).lower() == uuid.lower():
            return [ref]
    return []


def _child(center: Center, parent: Any, name: str) -> Any:
    if parent == refs.VM_FOLDER:
        # VMs may be ten thousand, and other children are few.
        vm = center.estate.vms.get(name)
        return refs.of(vm) if vm else None
    for ref in children_of(center, parent):
        obj = center.find(ref, None)
        if obj and center.read(obj, "name", None) == name:
            return ref
    return None
