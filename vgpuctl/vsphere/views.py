"""What vCenter reports about VMs, hosts and tasks, as our own frozen data: one function for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vgpuctl.model.admission import Admission
from vgpuctl.model.fleet import Mmio, Power, Task
from vgpuctl.model.hosts import Card, CardMode, Host, Policy
from vgpuctl.vsphere.faults import explain

SHARED = "sharedDirect"
#: vSphere: `guest.guestState` from ShutdownGuest until the VM is off. Such a guest is not asked twice.
SHUTTING_DOWN = "shuttingDown"
#: The type of a vGPU that cannot be read: it may take a whole card.
UNKNOWN_VGPU = "unknown-vgpu"
#: The states of a task that has ended.
_ENDED = {"success", "error"}

Properties = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The little we read about every VM: enough to decide whether it matters to us."""

    moid: str
    name: str
    host: str = ""
    folder: str = ""
    cluster: str = ""
    uuid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    """A VM that matters. `unreadable`: why the other fields are safe assumptions and not vCenter's report."""

    outline: Outline
    power: Power
    shutting_down: bool = False
    uuid: str = ""
    vgpus: tuple[str, ...] = ()
    memory_mib: int = 0
    memory_locked: bool = False
    reserved_mib: int = 0
    mmio: Mmio | None = None
    fixed_devices: tuple[str, ...] = ()
    tracing: tuple[str, ...] = ()
    managed_by: str = ""
    question: str = ""
    datastore: str = ""
    unreadable: str = ""


def moid_of(reference: Any) -> str:
    return str(getattr(reference, "_moId", ""))


def vm(properties: Properties, outline: Outline) -> Vm:
    # vSphere leaves out properties that are unset, so all but the power state may be missing.
    power = Power(str(properties["runtime.powerState"]))
    memory = int(properties.get("config.hardware.memoryMB") or 0)
    locked = bool(properties.get("config.memoryReservationLockedToMax"))
    managed, question = properties.get("config.managedBy"), properties.get("runtime.question")
    return Vm(
        outline=outline,
        power=power,
        shutting_down=power is Power.ON and str(properties.get("guest.guestState")) == SHUTTING_DOWN,
        uuid=str(properties.get("config.uuid") or ""),
        vgpus=_vgpu_types(properties),
        memory_mib=memory,
        memory_locked=locked,
        # vSphere: memoryReservationLockedToMax reserves all memory, whatever the reservation says.
        reserved_mib=memory if locked else int(properties.get("summary.config.memoryReservation") or 0),
        mmio=_mmio(properties),
        fixed_devices=tuple(_fixed_devices(properties.get("config.hardware.device"))),
        tracing=tuple(_tracing(properties.get("config.extraConfig"))),
        managed_by=str(managed.extensionKey) if managed is not None else "",
        question=str(question.text) if question is not None else "",
        datastore=_suspend_store(properties),
    )


def _suspend_store(properties: Properties) -> str:
    """Return the name of the datastore that a suspend writes to; "" if the path does not name it."""
    # vSphere: `[datastore] folder`. The directory may also be a path of the host, which does not say the datastore.
    path = properties.get("config.files.suspendDirectory") or properties.get("config.files.vmPathName") or ""
    name, bracket, _ = str(path).partition("]")
    return name.removeprefix("[") if bracket and name.startswith("[") else ""


def unreadable_vm(properties: Properties, outline: Outline, why: str) -> Vm:
    """Return a safe picture of a VM that cannot be read: unless the opposite is certain, it runs and fills its card."""
    power = str(properties.get("runtime.powerState"))
    try:
        vgpus = _vgpu_types(properties)
    except Exception:
        vgpus = (UNKNOWN_VGPU,)
    return Vm(
        outline=outline,
        power=Power(power) if power in set(Power) else Power.ON,
        uuid=str(properties.get("config.uuid") or ""),
        vgpus=vgpus,
        unreadable=why,
    )


def _vgpu_types(properties: Properties) -> tuple[str, ...]:
    types = tuple(device.backing.vgpu for device in vgpu_devices(properties.get("config.hardware.device")))
    if not all(isinstance(each, str) and each for each in types):
        raise ValueError("one of its vGPUs has no type")
    return types


def vgpu_devices(devices: Any) -> list[Any]:
    """Return the devices that are vGPUs."""
    from pyVmomi import vim  # noqa: PLC0415

    backing = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo
    passthrough = (d for d in devices or () if isinstance(d, vim.vm.device.VirtualPCIPassthrough))
    return [device for device in passthrough if isinstance(device.backing, backing)]


def _fixed_devices(devices: Any) -> Iterator[str]:
    """Yield devices that prevent a suspend of the VM."""
    from pyVmomi import vim  # noqa: PLC0415

    # vSphere: DirectPath I/O and SR-IOV devices forbid a suspend. VMs for training over RDMA have them.
    backings = vim.vm.device.VirtualPCIPassthrough
    for device in devices or ():
        if isinstance(device, vim.vm.device.VirtualSriovEthernetCard):
            yield "an SR-IOV network card"
        elif isinstance(device, backings) and isinstance(
            device.backing, backings.DeviceBackingInfo | backings.DynamicBackingInfo
        ):
            yield "a DirectPath I/O device"


#: NVIDIA: plugin parameters of the VM's vGPU number N. vSphere keeps the keys' letters as they were written.
TRACING = re.compile(r"pciPassthru\d+\.cfg\.enable_(uvm|debugging|profiling)", re.IGNORECASE)


def _tracing(settings: Any) -> Iterator[str]:
    """Yield the settings that switch on unified memory, debuggers or profilers in a vGPU."""
    # NVIDIA, C-series: with any of them there is no migration, which includes suspend and resume.
    for option in settings or ():
        if TRACING.fullmatch(str(option.key)) and str(option.value).lower() in ("1", "true"):
            yield str(option.key)


#: Digits of a VM's address space in GiB. The setting is free text and may hold more.
LONGEST_SIZE = 9


def _mmio(properties: Properties) -> Mmio | None:
    """Return the MMIO settings; None if they were not asked for."""
    # `config.extraConfig` is also asked for other settings, and alone says nothing of EFI.
    if "config.firmware" not in properties:
        return None
    settings = {option.key.lower(): str(option.value) for option in properties.get("config.extraConfig") or ()}
    size = settings.get("pcipassthru.64bitmmiosizegb", "")
    return Mmio(
        efi=str(properties.get("config.firmware")) == "efi",
        use_64bit=settings.get("pcipassthru.use64bitmmio", "").lower() == "true",
        size_gib=int(size) if size.isdecimal() and len(size) <= LONGEST_SIZE else 0,
    )


def task(properties: Properties) -> Task:
    """Return a task in plain words, with its fault explained."""
    error = properties.get("info.error")
    explanation = explain(error) if error is not None else None
    return Task(
        key=str(properties["info.key"]),
        # vSphere: such as `VirtualMachine.powerOn` (compared with vcsim).
        kind=str(properties.get("info.descriptionId") or "").rsplit(".", 1)[-1],
        running=str(properties["info.state"]) not in _ENDED,
        fault=type(error).__name__.rsplit(".", 1)[-1] if error is not None else None,
        message=explanation.text if explanation else "",
        passing=explanation.passing if explanation else False,
        own=explanation.own if explanation else False,
    )


def unreadable_task(properties: Properties, key: str, _why: str) -> Task:
    """Return a safe picture of a task that cannot be read: unless it has certainly ended, its VM is busy."""
    ended = str(properties.get("info.state")) in _ENDED
    return Task(key=str(properties.get("info.key") or key), kind="a task that cannot be read", running=not ended)


def host(properties: Properties, cluster: str, admission: Admission | None = None) -> Host:
    """Return a host. At this point its cards hold VMs by their ids."""
    cards = tuple(map(_card, properties.get("config.graphicsInfo") or ()))
    graphics = properties.get("config.graphicsConfig")
    return Host(
        name=properties["name"],
        cards=tuple(card for card in cards if card.shared),
        unshared=tuple(card for card in cards if not card.shared),
        offers=tuple(properties.get("config.sharedPassthruGpuTypes") or ()),
        not_suspendable=frozenset(
            str(capability.vgpu)
            for capability in properties.get("config.sharedGpuCapabilities") or ()
            if not capability.suspendSupported
        ),
        # vSphere: `performance` is the default.
        policy=_known_word(Policy, getattr(graphics, "sharedPassthruAssignmentPolicy", None), Policy.PERFORMANCE),
        cluster=cluster,
        admission=admission,
        memory_mib=int(properties.get("hardware.memorySize") or 0) >> 20,
        maintenance=bool(properties.get("runtime.inMaintenanceMode")),
        connected=str(properties.get("runtime.connectionState") or "connected") == "connected",
    )


def _card(info: Any) -> Card:
    return Card(
        pci_id=info.pciId,
        model=_model(info.deviceName, info.memorySizeInKB // 1024),
        frame_mib=info.memorySizeInKB // 1024,
        holds=tuple(map(moid_of, info.vm or ())),
        shared=str(info.graphicsType) == SHARED,
        # vSphere API 8.0.3: earlier versions know no vgpuMode, and their cards hold one size.
        mode=_known_word(CardMode, getattr(info, "vgpuMode", None), CardMode.SAME_SIZE),
    )


def _known_word(kind: Any, word: Any, usual: Any) -> Any:
    """Return vSphere's word as ours; an unknown word counts as the usual one."""
    return kind(str(word)) if str(word) in set(kind) else usual


def _model(device_name: str, frame_mib: int) -> str:
    """Return a short name of a card: `NVIDIA Tesla V100-PCIE-16GB` → `V100-16`."""
    words = [word for word in device_name.split() if word.upper() not in {"NVIDIA", "TESLA", "CORPORATION"}]
    board = words[0].split("-")[0] if words else device_name
    return f"{board}-{round(frame_mib / 1024)}"
