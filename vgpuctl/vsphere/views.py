"""What vCenter says of VMs and hosts, as plain data: one class for each, one function for each property."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vgpuctl.model.fleet import Card, Host, Power, Task
from vgpuctl.vsphere.faults import explain

VM_PROPERTIES = [
    "name",
    "runtime.powerState",
    "runtime.host",
    "config.uuid",
    "config.hardware.device",
    "config.memoryReservationLockedToMax",
]
HOST_PROPERTIES = ["name", "config.graphicsInfo", "config.sharedPassthruGpuTypes"]
TASK_PROPERTIES = ["info.key", "info.state", "info.descriptionId", "info.entity", "info.error"]

SHARED = "sharedDirect"

Properties = Mapping[str, Any]


def vgpu_devices(devices: Any) -> list[Any]:
    """The devices that are vGPUs."""
    from pyVmomi import vim  # noqa: PLC0415

    backing = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo
    passthrough = (d for d in devices or () if isinstance(d, vim.vm.device.VirtualPCIPassthrough))
    return [device for device in passthrough if isinstance(device.backing, backing)]


def power(vm: Properties) -> Power:
    return Power(str(vm["runtime.powerState"]))


def vgpus(vm: Properties) -> tuple[str, ...]:
    return tuple(device.backing.vgpu for device in vgpu_devices(vm.get("config.hardware.device")))


def task(properties: Properties) -> Task:
    """A task in plain words; its fault explained."""
    error = properties.get("info.error")
    explanation = explain(error) if error is not None else None
    return Task(
        key=str(properties["info.key"]),
        kind=str(properties.get("info.descriptionId") or "").rsplit(".", 1)[-1],
        running=str(properties["info.state"]) in {"queued", "running"},
        fault=type(error).__name__.rsplit(".", 1)[-1] if error is not None else None,
        message=explanation.text if explanation else "",
        passing=explanation.passing if explanation else False,
    )


def host(properties: Properties, names: Mapping[str, str]) -> Host:
    """`names`: the name of each VM, by its id."""
    cards = tuple(_card(info, names) for info in properties.get("config.graphicsInfo") or ())
    return Host(
        name=properties["name"],
        cards=tuple(card for card in cards if card.shared),
        offers=tuple(properties.get("config.sharedPassthruGpuTypes") or ()),
    )


def _card(info: Any, names: Mapping[str, str]) -> Card:
    return Card(
        pci_id=info.pciId,
        model=_model(info.deviceName, info.memorySizeInKB // 1024),
        frame_mib=info.memorySizeInKB // 1024,
        holds=tuple(names.get(vm._moId, vm._moId) for vm in info.vm or ()),
        shared=str(info.graphicsType) == SHARED,
    )


def _model(device_name: str, frame_mib: int) -> str:
    """`NVIDIA Tesla V100-PCIE-16GB` → `V100-16`."""
    words = [word for word in device_name.split() if word.upper() not in {"NVIDIA", "TESLA", "CORPORATION"}]
    board = words[0].split("-")[0] if words else device_name
    return f"{board}-{round(frame_mib / 1024)}"
