"""Faults as the wire knows them."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter import refs
from vgpuctl.sim.vcenter.metadata import wire_type
from vgpuctl.sim.vcenter.records import Task, Vm
from vgpuctl.sim.vcenter.refusals import Refusal
from vgpuctl.sim.vcenter.vmomi import vim, vmodl


def fault_of(refusal: Refusal) -> Any:
    """By the refusal's name: whatever the physics refuse, the metadata know its type."""
    details = {name: _on_the_wire(value) for name, value in refusal.details.items()}
    return wire_type(refusal.kind)(msg=refusal.message, **details)


def _on_the_wire(detail: object) -> Any:
    return refs.of(detail) if isinstance(detail, Task | Vm) else detail


def not_authenticated(target: Any) -> Any:
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
    return vmodl.fault.RequestCanceled(msg="The task was canceled by a user.")
