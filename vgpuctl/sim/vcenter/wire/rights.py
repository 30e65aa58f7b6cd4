"""The privileges that each call and each property needs, mostly from the metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.permissions import READING, SYSTEM_READ
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.metadata import named_privileges, property_privilege, set_properties
from vgpuctl.sim.vcenter.wire.requests import Request
from vgpuctl.sim.vcenter.wire.sessions import Session
from vgpuctl.sim.vcenter.wire.vmomi import vim

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


def check(center: Center, session: Session | None, request: Request) -> None:
    """Refuse a call whose privileges the user lacks."""
    for target, privilege in required(request) if session else ():
        # vSphere API: NoPermission names the object and the privilege.
        if session and privilege not in center.privileges_on(target, session):
            raise faults.no_permission(target, privilege)


def privilege_to_read(kind: Any, path: str) -> str | None:
    """Return the privilege that reading a property needs, or None."""
    privilege = property_privilege(kind, path)
    # vSphere API: where the reference names no privilege for an entity's property, it is System.Read (inferred).
    needs_read = issubclass(kind, vim.ManagedEntity | vim.Task)
    return privilege or (SYSTEM_READ if needs_read else None)


def all_privileges() -> list[str]:
    """Return every privilege that the API's metadata or a simulated method name."""
    others = (*_NOT_IN_METADATA.values(), *_CONFIG_PRIVILEGES.values(), *_DEVICE_PRIVILEGES.values())
    return sorted({*READING, *named_privileges(), *others, _ADD_DEVICE, _SETTINGS})


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
            targets = argument if isinstance(argument, list) else [argument]
            yield from ((target, parameter.privId) for target in targets)


def _reconfigure_privileges(spec: Any) -> list[str]:
    """Return the privileges of all parts of a change, those of devices first."""
    devices = [_DEVICE_PRIVILEGES.get(change.operation, _ADD_DEVICE) for change in spec.deviceChange]
    named = (_CONFIG_PRIVILEGES[name] for name in sorted(set_properties(spec)) if name in _CONFIG_PRIVILEGES)
    return list(dict.fromkeys([*devices, *named])) or [_SETTINGS]
