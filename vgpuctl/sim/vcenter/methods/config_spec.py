"""Turns a VirtualMachineConfigSpec into the physics' changes. What is not simulated is refused, never ignored."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.physics.records import Changes
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.metadata import set_properties
from vgpuctl.sim.vcenter.wire.vmomi import vim

_SUPPORTED = {
    "deviceChange",
    "memoryReservationLockedToMax",
    "memoryAllocation",
    "memoryMB",
    "numCPUs",
    "annotation",
    "extraConfig",
    "changeVersion",
}
_PASSTHROUGH = vim.vm.device.VirtualPCIPassthrough


def changes_of(spec: Any) -> Changes:
    if unsupported := set_properties(spec) - _SUPPORTED:
        raise faults.not_supported("to reconfigure " + ", ".join(sorted(unsupported)))
    return Changes(
        added=tuple((index, _vgpu(change)) for index, change in _devices(spec, "add")),
        replaced=tuple((index, change.device.key, _vgpu(change)) for index, change in _devices(spec, "edit")),
        removed=tuple((index, change.device.key) for index, change in _devices(spec, "remove")),
        memory_locked=spec.memoryReservationLockedToMax,
        memory_mib=spec.memoryMB,
        cpus=spec.numCPUs,
        annotation=spec.annotation,
        extra_config=tuple((option.key, str(option.value)) for option in spec.extraConfig),
        expected_revision=_revision(spec.changeVersion),
    )


def _devices(spec: Any, operation: str) -> list[tuple[int, Any]]:
    for change in spec.deviceChange:
        if not isinstance(change.device, _PASSTHROUGH) or change.operation not in ("add", "edit", "remove"):
            raise faults.not_supported("to reconfigure devices other than vGPUs")
    return [(index, change) for index, change in enumerate(spec.deviceChange) if change.operation == operation]


def _vgpu(change: Any) -> str:
    backing = change.device.backing
    if not isinstance(backing, _PASSTHROUGH.VmiopBackingInfo) or not backing.vgpu:
        raise faults.not_supported("a passthrough device that is no vGPU")
    return str(backing.vgpu)


def _revision(version: str | None) -> int | None:
    if not version:
        return None
    # vSphere API: a change version is opaque to clients, so one that is no number is merely another version.
    return int(version) if version.isdecimal() else -1
