"""What a user may do. The metadata have each method's privilege; a user has all privileges, or only those to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import HANDLERS
from vgpuctl.sim.vcenter.wire.metadata import property_privilege, set_properties
from vgpuctl.sim.vcenter.wire.requests import Request, method_info
from vgpuctl.sim.vcenter.wire.sessions import Session

READING = ("System.Anonymous", "System.View", "System.Read")
#: pyVmomi's metadata name no privilege for these methods.
_NOT_IN_METADATA = {
    "Destroy_Task": "VirtualMachine.Inventory.Delete",
    "CancelTask": "Global.CancelTask",
}
#: vSphere API: "Reconfigure privilege" of each field of VirtualMachineConfigSpec.
_CONFIG_PRIVILEGES = {
    "memoryMB": "VirtualMachine.Config.Memory",
    "numCPUs": "VirtualMachine.Config.CPUCount",
    "memoryReservationLockedToMax": "VirtualMachine.Config.Resource",
    "memoryAllocation": "VirtualMachine.Config.Resource",
    "extraConfig": "VirtualMachine.Config.AdvancedConfig",
    "annotation": "VirtualMachine.Config.Rename",
}
#: vSphere API: EditDevice for a change of a device, AddRemoveDevice for adding and removing.
_DEVICE_PRIVILEGES = {"edit": "VirtualMachine.Config.EditDevice"}
_ADD_DEVICE = "VirtualMachine.Config.AddRemoveDevice"
_SETTINGS = "VirtualMachine.Config.Settings"


def check(session: Session | None, request: Request) -> None:
    """Refuse a call whose privileges the user lacks."""
    if session is None or not session.read_only:
        return
    for target, privilege in required(request):
        # vSphere API: NoPermission names the object and the privilege.
        if privilege not in READING:
            raise faults.no_permission(target, privilege)


def missing_read_privilege(session: Session | None, kind: Any, path: str) -> str | None:
    """Return the privilege that the user lacks to read the property, or None."""
    privilege = property_privilege(kind, path)
    is_missing = privilege and session and not has_privilege(session.read_only, privilege)
    return privilege if is_missing else None


def has_privilege(read_only: bool, privilege: str) -> bool:
    return privilege in READING or not read_only


def all_privileges() -> list[str]:
    """Return every privilege that a simulated method asks for."""
    named = {method_info(method).privId for method in HANDLERS}
    others = (*_NOT_IN_METADATA.values(), *_CONFIG_PRIVILEGES.values(), *_DEVICE_PRIVILEGES.values())
    return sorted({*READING, *filter(None, named), *others, _ADD_DEVICE, _SETTINGS})


def required(request: Request) -> Iterator[tuple[Any, str]]:
    """Yield each privilege that a call needs, with its object."""
    info = request.info
    if info.privId or request.method in _NOT_IN_METADATA:
        yield request.this, info.privId or _NOT_IN_METADATA[request.method]
    if request.method == "ReconfigVM_Task":
        for privilege in _reconfigure_privileges(request.arguments[0]):
            yield request.this, privilege
    for parameter, argument in zip(info.params, request.arguments, strict=True):
        if parameter.privId and argument:
            yield argument[0] if isinstance(argument, list) else argument, parameter.privId


def _reconfigure_privileges(spec: Any) -> list[str]:
    """Return the privileges of all parts of a change, those of devices first."""
    devices = [_DEVICE_PRIVILEGES.get(change.operation, _ADD_DEVICE) for change in spec.deviceChange]
    named = (_CONFIG_PRIVILEGES[name] for name in sorted(set_properties(spec)) if name in _CONFIG_PRIVILEGES)
    return list(dict.fromkeys([*devices, *named])) or [_SETTINGS]
