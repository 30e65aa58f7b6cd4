"""What we ask of vCenter: one task call for each request."""

from __future__ import annotations

from typing import Any

from vgpuctl.engine.ports import Answer
from vgpuctl.model.requests import AttachVgpus, PowerOnVm, ShutDownGuest, SuspendVm
from vgpuctl.vsphere.faults import translated
from vgpuctl.vsphere.session import Session
from vgpuctl.vsphere.views import vgpu_devices

VmRequest = SuspendVm | PowerOnVm | ShutDownGuest | AttachVgpus


def send(session: Session, request: VmRequest) -> Answer:
    """Send it, once; vCenter's task tells the rest."""
    vm = session.object("VirtualMachine", request.vm)
    with translated(session.settings.server):
        match request:
            case SuspendVm():
                task = vm.SuspendVM_Task()
            case PowerOnVm():
                task = vm.PowerOnVM_Task()
            case AttachVgpus():
                task = vm.ReconfigVM_Task(_devices(vm, request.vgpus))
            case ShutDownGuest():
                vm.ShutdownGuest()
                return Answer()
    return Answer(task=task._moId)


def _devices(vm: Any, wanted: tuple[str, ...]) -> Any:
    """Wrong vGPUs out and the wanted ones in, in one change. Memory must be reserved for a vGPU to start."""
    vim = _types()
    present = vgpu_devices(vm.config.hardware.device)
    spec = vim.vm.ConfigSpec(memoryReservationLockedToMax=True if wanted else None)
    if sorted(device.backing.vgpu for device in present) != sorted(wanted):
        change = vim.vm.device.VirtualDeviceSpec
        spec.deviceChange = [
            *(change(operation="remove", device=device) for device in present),
            *(change(operation="add", device=_device(-n, vgpu)) for n, vgpu in enumerate(wanted, start=1)),
        ]
    return spec


def _device(key: int, vgpu: str) -> Any:
    passthrough = _types().vm.device.VirtualPCIPassthrough
    return passthrough(key=key, backing=passthrough.VmiopBackingInfo(vgpu=vgpu))


def _types() -> Any:
    from pyVmomi import vim  # noqa: PLC0415

    return vim
