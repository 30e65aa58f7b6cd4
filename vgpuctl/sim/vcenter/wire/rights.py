"""What a user may do: each method's privilege is in the metadata, each user has all of them or may only read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import HANDLERS
from vgpuctl.sim.vcenter.wire.metadata import names_set, property_privilege
from vgpuctl.sim.vcenter.wire.requests import Request, method_info
from vgpuctl.sim.vcenter.wire.sessions import Session

READING = ("System.Anonymous", "System.View", "System.Read")
_WHERE_METADATA_ARE_SILENT = {
    "CloneVM_Task": "VirtualMachine.Provisioning.Clone",
    "Destroy_Task": "VirtualMachine.Inventory.Delete",
    "CancelTask": "Global.CancelTask",
}
_TO_CHANGE = {
    "memoryMB": "VirtualMachine.Config.Memory",
    "numCPUs": "VirtualMachine.Config.CPUCount",
    "memoryReservationLockedToMax": "VirtualMachine.Config.Resource",
    "memoryAllocation": "VirtualMachine.Config.Resource",
    "extraConfig": "VirtualMachine.Config.AdvancedConfig",
    "annotation": "VirtualMachine.Config.Annotation",
}
_TO_CHANGE_DEVICES = {"edit": "VirtualMachine.Config.EditDevice"}
_ADD_DEVICE = "VirtualMachine.Config.AddRemoveDevice"
_SETTINGS = "VirtualMachine.Config.Settings"


def check(session: Session | None, request: Request) -> None:
    """Refuse what this user may not do."""
    if session is None or not session.read_only:
        return
    for target, privilege in _needed(request):
        if privilege not in READING:
            raise faults.no_permission(target, privilege)


def to_read(session: Session | None, kind: Any, path: str) -> str | None:
    """The privilege that this user lacks to read that property, if any."""
    privilege = property_privilege(kind, path)
    lacks = privilege and session and not holds(session.read_only, privilege)
    return privilege if lacks else None


def holds(read_only: bool, privilege: str) -> bool:
    return privilege in READING or not read_only


def known() -> list[str]:
    """Every privilege that a method of ours asks for."""
    asked = {method_info(method).privId for method in HANDLERS}
    silent = (*_WHERE_METADATA_ARE_SILENT.values(), *_TO_CHANGE.values(), *_TO_CHANGE_DEVICES.values())
    return sorted({*READING, *filter(None, asked), *silent, _ADD_DEVICE, _SETTINGS})


def _needed(request: Request) -> Iterator[tuple[Any, str]]:
    info = request.info
    if info.privId or request.method in _WHERE_METADATA_ARE_SILENT:
        yield request.this, info.privId or _WHERE_METADATA_ARE_SILENT[request.method]
    if request.method == "ReconfigVM_Task":
        yield request.this, _to_reconfigure(request.arguments[0])
    for parameter, argument in zip(info.params, request.arguments, strict=True):
        if parameter.privId and argument:
            yield argument[0] if isinstance(argument, list) else argument, parameter.privId


def _to_reconfigure(spec: Any) -> str:
    for change in spec.deviceChange:
        return _TO_CHANGE_DEVICES.get(change.operation, _ADD_DEVICE)
    asked = sorted(names_set(spec))
    return next((_TO_CHANGE[name] for name in asked if name in _TO_CHANGE), _SETTINGS)
