"""The requests we send to vCenter: one call for each request, most of them tasks."""

from __future__ import annotations

from typing import Any

from vgpuctl.engine.ports import Answer
from vgpuctl.model.requests import AttachVgpus, PowerOffVm, PowerOnVm, ShutDownGuest, SuspendVm
from vgpuctl.vsphere.faults import translated
from vgpuctl.vsphere.session import Session
from vgpuctl.vsphere.views import vgpu_devices

VmRequest = SuspendVm | PowerOnVm | ShutDownGuest | PowerOffVm | AttachVgpus


def send(session: Session, request: VmRequest) -> Answer:
    """Send a request once. The stream reports the rest about its task."""
    vm = session.object("VirtualMachine", request.vm)
    with translated(session.settings.server):
        match request:
            case SuspendVm():
                # pyVim's WaitForTasks is not used: it reads task by task, stops at the first error and has no timeout.
                task = vm.SuspendVM_Task()
            case PowerOnVm():
                # vSphere: the card is vCenter's choice, and under DRS the host is, too (PowerOnVM_Task, API reference).
                task = vm.PowerOnVM_Task()
            case AttachVgpus():
                task = vm.ReconfigVM_Task(_device_change(vm, request))
            case PowerOffVm():
                task = vm.PowerOffVM_Task()
            case ShutDownGuest():
                task = _shut_down(vm, or_power_off=request.or_power_off)
    return Answer(task=task._moId if task is not None else None)


def _shut_down(vm: Any, *, or_power_off: bool) -> Any:
    """Ask the guest to shut down; vCenter only confirms the request. Without VMware Tools the VM may be powered off."""
    try:
        # vSphere: this is no task, and it needs running VMware Tools.
        vm.ShutdownGuest()
    except _types().fault.ToolsUnavailable:
        if or_power_off:
            return vm.PowerOffVM_Task()
        raise
    return None


def _device_change(vm: Any, request: AttachVgpus) -> Any:
    """Return one change that swaps wrong vGPUs for the wanted ones. A vGPU needs all memory reserved to start."""
    vim, wanted = _types(), request.vgpus
    # vSphere: the server assigns devices' keys, so they are read just now (vcsim gave a vGPU 205, not 13000).
    present = vgpu_devices(vm.config.hardware.device)
    spec = vim.vm.ConfigSpec(memoryReservationLockedToMax=True if wanted else None)
    if request.mmio_gib:
        mmio = {"pciPassthru.use64bitMMIO": "TRUE", "pciPassthru.64bitMMIOSizeGB": str(request.mmio_gib)}
        spec.extraConfig = [vim.option.OptionValue(key=key, value=value) for key, value in mmio.items()]
    if sorted(device.backing.vgpu for device in present) != sorted(wanted):
        change = vim.vm.device.VirtualDeviceSpec
        spec.deviceChange = [
            *(change(operation="remove", device=device) for device in present),
            *(change(operation="add", device=_device(-n, vgpu)) for n, vgpu in enumerate(wanted, start=1)),
        ]
    return spec


def _device(key: int, vgpu: str) -> Any:
    passthrough = _types().vm.device.VirtualPCIPassthrough
    # vSphere API, VirtualDevice.key: the server's own keys are never negative, so a new device may be.
    return passthrough(key=key, backing=passthrough.VmiopBackingInfo(vgpu=vgpu))


def _types() -> Any:
    from pyVmomi import vim  # noqa: PLC0415

    return vim
