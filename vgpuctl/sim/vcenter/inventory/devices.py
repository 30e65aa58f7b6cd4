"""A VM's virtual devices: a minimal set, and its vGPUs."""

from __future__ import annotations

import hashlib
from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.physics.power import SRIOV_LABEL
from vgpuctl.sim.vcenter.physics.records import Vm
from vgpuctl.sim.vcenter.wire.vmomi import vim

_PCI, _SCSI, _DISK, _CARD, _SRIOV = 100, 1000, 2000, 4000, 4001
_DISK_GIB = 64
_PHYSICAL_FUNCTION, _MELLANOX = "0000:18:00.0", 0x15B3


def device_list(vm: Vm) -> list[Any]:
    sriov = [_sriov_card(vm)] if vm.spec.sriov else []
    return [_pci_controller(vm), _scsi_controller(), _disk(vm), _network_card(vm), *sriov, *_vgpus(vm)]


def _vgpus(vm: Vm) -> list[Any]:
    return [_vgpu(key, vgpu, index) for index, (key, vgpu) in enumerate(sorted(vm.vgpus.items()))]


def _vgpu(key: int, vgpu: str, index: int) -> Any:
    return vim.vm.device.VirtualPCIPassthrough(
        key=key,
        deviceInfo=vim.Description(label=f"PCI device {index}", summary=f"NVIDIA GRID vGPU {vgpu}"),
        # vSphere API: this backing, and no other, makes the device a vGPU.
        backing=vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu=vgpu, migrateSupported=True),
        controllerKey=_PCI,
        unitNumber=18 + index,
    )


def _pci_controller(vm: Vm) -> Any:
    return vim.vm.device.VirtualPCIController(
        key=_PCI,
        deviceInfo=vim.Description(label="PCI controller 0", summary="PCI controller 0"),
        busNumber=0,
        device=[_SCSI, _CARD, *([_SRIOV] if vm.spec.sriov else []), *sorted(vm.vgpus)],
    )


def _scsi_controller() -> Any:
    return vim.vm.device.ParaVirtualSCSIController(
        key=_SCSI,
        deviceInfo=vim.Description(label="SCSI controller 0", summary="VMware paravirtual SCSI"),
        busNumber=0,
        device=[_DISK],
        hotAddRemove=True,
        sharedBus="noSharing",
        scsiCtlrUnitNumber=7,
        controllerKey=_PCI,
        unitNumber=3,
    )


def _disk(vm: Vm) -> Any:
    kib = _DISK_GIB * 1024 * 1024
    return vim.vm.device.VirtualDisk(
        key=_DISK,
        deviceInfo=vim.Description(label="Hard disk 1", summary=f"{kib:,} KB"),
        backing=vim.vm.device.VirtualDisk.FlatVer2BackingInfo(
            fileName=f"[{vm.store.name}] {vm.guest}/{vm.name}.vmdk", datastore=refs.of(vm.store), diskMode="persistent"
        ),
        controllerKey=_SCSI,
        unitNumber=0,
        capacityInKB=kib,
        capacityInBytes=kib * 1024,
    )


def _network_card(vm: Vm) -> Any:
    return vim.vm.device.VirtualVmxnet3(
        key=_CARD,
        deviceInfo=vim.Description(label="Network adapter 1", summary="VM Network"),
        backing=_network(vm),
        # Decision 0010: every change of power connects or disconnects network cards, so it changes this device.
        connectable=vim.vm.device.VirtualDevice.ConnectInfo(
            startConnected=True, allowGuestControl=True, connected=vm.shown_power.value == "poweredOn"
        ),
        controllerKey=_PCI,
        unitNumber=7,
        addressType="assigned",
        macAddress=macs(vm.guest)[0],
        wakeOnLanEnabled=True,
    )


def _network(vm: Vm) -> Any:
    network = refs.network(vm.host.cluster.datacenter)
    return vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(deviceName="VM Network", network=network)


def _sriov_card(vm: Vm) -> Any:
    # vSphere: such a device forbids suspending. RDMA training VMs have them.
    return vim.vm.device.VirtualSriovEthernetCard(
        key=_SRIOV,
        deviceInfo=vim.Description(label=SRIOV_LABEL, summary="VM Network"),
        backing=_network(vm),
        sriovBacking=vim.vm.device.VirtualSriovEthernetCard.SriovBackingInfo(
            physicalFunctionBacking=vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
                deviceName="", id=_PHYSICAL_FUNCTION, deviceId="101d", systemId="BYPASS", vendorId=_MELLANOX
            )
        ),
        controllerKey=_PCI,
        unitNumber=8,
        addressType="assigned",
        macAddress=macs(vm.guest)[1],
        wakeOnLanEnabled=False,
    )


def macs(name: str) -> tuple[str, str]:
    """Return the MAC addresses of a VM's network card and SR-IOV card: the same in every world."""
    return _mac(name), _mac(f"{name} sriov")


def _mac(name: str) -> str:
    """Return an address in VMware's range."""
    digest = hashlib.sha256(name.encode()).digest()
    return f"00:50:56:{digest[0] & 0x3F:02x}:{digest[1]:02x}:{digest[2]:02x}"
