"""Faults as vim types."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.physics import refusals
from vgpuctl.sim.vcenter.physics.records import Host, Task, Vm
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.vcenter.wire.metadata import wire_type
from vgpuctl.sim.vcenter.wire.vmomi import support, vim, vmodl


def fault_of(refusal: Refusal) -> Any:
    """Return the vim fault of a refusal. The metadata find its type by name."""
    details = {name: _detail(value) for name, value in refusal.details.items()}
    return wire_type(refusal.kind)(msg=refusal.message, **details)


def _detail(value: Any) -> Any:
    if isinstance(value, list):
        return [_detail(item) for item in value]
    if isinstance(value, Refusal):
        return fault_of(value)
    return refs.of(value) if isinstance(value, Host | Task | Vm) else value


def refusal_by_name(kind: str) -> Refusal:
    """Return a refusal for an injected fault. Its message says that it was injected."""
    # pyVmomi cannot serialise a fault whose required fields are missing.
    required = (field for field in wire_type(kind)._GetPropertyList() if not field.flags & support.F_OPTIONAL)
    return Refusal(kind, f"Injected: {kind}.", **{field.name: _placeholder(field.type) for field in required})


def _placeholder(kind: Any) -> Any:
    """Return any value that fits a required field of a fault."""
    if issubclass(kind, support.ManagedObject):
        return kind("injected")
    return kind(getattr(kind, "values", ("",))[0]) if issubclass(kind, str) else kind()


def by_name(kind: str) -> Any:
    return fault_of(refusal_by_name(kind))


#: A mistyped name is compared with these, and the nearest is suggested.
COMMON = (
    "ConcurrentAccess",
    "DeviceUnsupportedForVmPlatform",
    "GenericVmConfigFault",
    "HostNotConnected",
    "InsufficientFailoverResourcesFault",
    "InsufficientGraphicsResourcesFault",
    "InsufficientMemoryResourcesFault",
    "InvalidDeviceBacking",
    "InvalidLogin",
    "InvalidPowerState",
    "InvalidState",
    "ManagedObjectNotFound",
    "MigrationDisabled",
    "NoCompatibleHost",
    "NoDiskSpace",
    "NoPermission",
    "NotAuthenticated",
    "NotSupported",
    "RequestCanceled",
    "RestrictedVersion",
    "SystemError",
    "TaskInProgress",
    "Timedout",
    "ToolsUnavailable",
    "VmConfigFault",
)
"""Faults that users of vGPU VMs meet. Any other fault of the API may be injected too."""


def is_fault(name: str) -> bool:
    try:
        return issubclass(wire_type(name), vmodl.MethodFault)
    except KeyError:
        return False


def not_authenticated(target: Any) -> Any:
    # Measured with vcsim 0.56: `privilegeId` is System.View.
    return vim.fault.NotAuthenticated(msg="The session is not authenticated.", object=target, privilegeId="System.View")


def no_permission(target: Any, privilege: str) -> Any:
    return vim.fault.NoPermission(
        msg="Permission to perform this operation was denied.", object=target, privilegeId=privilege
    )


def not_found(target: Any) -> Any:
    return vmodl.fault.ManagedObjectNotFound(
        msg=f"The object '{type(target).__name__}:{target._moId}' has already been deleted"
        " or has not been completely created",
        obj=target,
    )


def not_supported(what: str) -> Any:
    return vmodl.fault.NotSupported(msg=f"The operation is not supported on the object: {what}.")


def method_not_found(method: str) -> Any:
    # Measured: vcsim 0.56 answers an unknown method with a SOAP fault, too.
    return vmodl.fault.MethodNotFound(msg=f"Unknown method {method}.", receiver=refs.SERVICE, method=method)


def invalid_request(why: str) -> Any:
    return vmodl.fault.InvalidRequest(msg=f"Unable to parse the request: {why}")


def invalid_argument(name: str) -> Any:
    return vmodl.fault.InvalidArgument(msg="A specified parameter was not correct: " + name, invalidProperty=name)


def invalid_state(why: str) -> Any:
    return vim.fault.InvalidState(msg=why)


def invalid_property(path: str) -> Any:
    return vmodl.query.InvalidProperty(msg=f"The property '{path}' does not exist.", name=path)


def canceled() -> Any:
    return fault_of(refusals.canceled())
