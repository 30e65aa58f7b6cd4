"""Why vCenter says no: the physics' faults, by their names on the wire, without the wire's types."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.records import Power, Task, Vm


class Refusal(Exception):  # noqa: N818 - named as vCenter means it, not as Python does
    """`kind` is the fault's name in vSphere's API, `details` its further fields."""

    def __init__(self, kind: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.details = details


def wrong_power(vm: Vm, wanted: Power) -> Refusal:
    return Refusal(
        "InvalidPowerState",
        f"The attempted operation cannot be performed in the current state ({_in_words(vm.power)}).",
        existingState=vm.power.value,
        requestedState=wanted.value,
    )


def busy(task: Task) -> Refusal:
    return Refusal("TaskInProgress", "Another task is already in progress.", task=task)


def no_graphics() -> Refusal:
    return Refusal(
        "InsufficientGraphicsResourcesFault",
        "The amount of graphics resource available in the parent resource pool is insufficient for the operation.",
    )


def memory_not_reserved(vm: Vm) -> Refusal:
    reason = f"Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize({vm.memory_mib})."
    return Refusal("GenericVmConfigFault", reason, reason=reason)


def unknown_vgpu(index: int) -> Refusal:
    """Inferred: no source says with which fault vCenter refuses a vGPU type that the host does not offer."""
    return Refusal(
        "InvalidDeviceBacking",
        f"Invalid backing for device '{index}'.",
        deviceIndex=index,
        property="virtualDeviceSpec.device.backing.vgpu",
    )


def no_such_device(index: int) -> Refusal:
    return Refusal(
        "DeviceNotFound",
        f"Device '{index}' was not found.",
        deviceIndex=index,
        property="virtualDeviceSpec.device.key",
    )


def changed_meanwhile() -> Refusal:
    return Refusal("ConcurrentAccess", "The object has already been modified by a concurrent operation.")


def duplicate_name(vm: Vm) -> Refusal:
    return Refusal("DuplicateName", f"The name '{vm.name}' already exists.", name=vm.name, object=vm)


def tools_missing() -> Refusal:
    return Refusal(
        "ToolsUnavailable",
        "Cannot complete operation because VMware Tools is not running in this virtual machine.",
    )


def _in_words(power: Power) -> str:
    return {"poweredOn": "Powered on", "poweredOff": "Powered off", "suspended": "Suspended"}[power.value]
