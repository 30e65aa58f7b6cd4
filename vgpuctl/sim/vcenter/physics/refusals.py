"""Why vCenter refuses: the physics' faults by their names on the wire, without vim types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.places import Store
    from vgpuctl.sim.vcenter.physics.records import Host, Power, Task, Vm

MIB = 1 << 20


class Refusal(Exception):  # noqa: N818 - named as vCenter means it, not as Python does
    """`kind` is the fault's name in vSphere's API, `details` are its further fields."""

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
        # Measured with vcsim 0.56: a suspend of a VM that is off names poweredOn here, the state that it needs.
        requestedState=wanted.value,
    )


def busy(task: Task) -> Refusal:
    # vSphere API: the fault names the running task. vcsim 0.56 lets the second task wait instead (measured).
    return Refusal("TaskInProgress", "Another task is already in progress.", task=task)


def no_graphics() -> Refusal:
    return Refusal(
        "InsufficientGraphicsResourcesFault",
        # vSphere: the text that people see, so a client that matches texts meets it here, too.
        "The amount of graphics resource available in the parent resource pool is insufficient for the operation.",
    )


def memory_not_reserved(vm: Vm) -> Refusal:
    reason = f"Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize({vm.memory_mib})."
    return Refusal("GenericVmConfigFault", reason, reason=reason)


def unknown_vgpu(index: int) -> Refusal:
    """Inferred: no source names the fault for a vGPU type that the host does not offer."""
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


def no_memory(host: Host, vm: Vm) -> Refusal:
    return Refusal(
        "InsufficientMemoryResourcesFault",
        "The available Memory resources in the parent resource pool are insufficient for the operation.",
        unreserved=host.unreserved_mib * MIB,
        requested=vm.needed_mib * MIB,
    )


def no_failover() -> Refusal:
    """Inferred: a dedicated failover host refuses with the same fault as the other policies."""
    return Refusal(
        "InsufficientFailoverResourcesFault",
        "Insufficient resources to satisfy configured failover level for vSphere HA.",
    )


def no_disk_space(vm: Vm, store: Store) -> Refusal:
    return Refusal(
        "NoDiskSpace",
        f"Insufficient disk space on datastore '{store.name}'.",
        # vSphere: the suspend file is beside the VM's .vmx, unless `config.files.suspendDirectory` names another place.
        file=f"[{store.name}] {vm.guest}/{vm.name}.vmss",
        datastore=store.name,
    )


def not_suspendable(device: str) -> Refusal:
    """Inferred: the documentation says that such VMs cannot be suspended, but not with which fault or message."""
    reason = f"The virtual machine cannot be suspended: device '{device}' does not support it."
    return Refusal("GenericVmConfigFault", reason, reason=reason)


def too_many_vgpus(most: int) -> Refusal:
    """Inferred: the limit is documented, the fault is not."""
    return Refusal(
        "TooManyDevices",
        f"The number of PCI devices exceeds the limit of {most}.",
        property="virtualDeviceSpec.device",
    )


def stale_state(vm: Vm, host: Host) -> Refusal:
    """Inferred: no source names the fault for a suspended state of another version."""
    reason = f"The saved state of '{vm.name}' was made by another version of the software of host '{host.name}'."
    return Refusal("GenericVmConfigFault", reason, reason=reason)


def wrong_state() -> Refusal:
    return Refusal("InvalidState", "The operation is not allowed in the current state.")


def not_connected() -> Refusal:
    return Refusal("HostNotConnected", "Unable to communicate with the remote host, since it is disconnected.")


def lost_host() -> Refusal:
    """The fault of tasks that run while their host is lost (inferred)."""
    return Refusal("HostCommunication", "Unable to communicate with the remote host.")


def not_migratable(host: Host) -> Refusal:
    """Inferred: vMotion of such a VM is refused unless the vCenter allows it, but no source names the fault."""
    return Refusal(
        "MigrationFeatureNotSupported",
        f"A required migration feature is not supported on the source host '{host.name}'.",
        atSourceHost=True,
        failedHostName=host.name,
        failedHost=host,
    )


def bound_elsewhere(vm: Vm, host: Host) -> Refusal:
    # vSphere API: VmHostAffinityRuleViolation, for a mandatory rule.
    return Refusal(
        "VmHostAffinityRuleViolation",
        f"Virtual machine '{vm.name}' on host '{host.name}' would violate a virtual machine - host affinity rule.",
        vmName=vm.name,
        hostName=host.name,
    )


def no_compatible_host(refused: Sequence[tuple[Host, Refusal]]) -> Refusal:
    """Return DRS's fault when no host of the cluster fits: each host with its reason."""
    return Refusal(
        "NoCompatibleHost",
        "No host is compatible with the virtual machine.",
        host=[host for host, _ in refused],
        error=[refusal for _, refusal in refused],
    )


def canceled() -> Refusal:
    return Refusal("RequestCanceled", "The task was canceled by a user.")


def not_cancelable() -> Refusal:
    return Refusal("NotSupported", "The operation is not supported on the object: the task cannot be canceled.")


def timed_out() -> Refusal:
    return Refusal("Timedout", "Operation timed out.")


def no_such_answer(name: str) -> Refusal:
    return Refusal("InvalidArgument", f"A specified parameter was not correct: {name}", invalidProperty=name)


def tools_missing() -> Refusal:
    return Refusal(
        "ToolsUnavailable",
        "Cannot complete operation because VMware Tools is not running in this virtual machine.",
    )


def _in_words(power: Power) -> str:
    return {"poweredOn": "Powered on", "poweredOff": "Powered off", "suspended": "Suspended"}[power.value]
