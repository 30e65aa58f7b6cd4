"""Devices with which no VM can be suspended, as vCenter tells of them."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from vgpuctl.vsphere.views import Outline, vm

PCI = vim.vm.device.VirtualPCIPassthrough
DEVICES: dict[str, list[vim.vm.device.VirtualDevice]] = {
    "a DirectPath I/O device": [PCI(backing=PCI.DeviceBackingInfo()), PCI(backing=PCI.DynamicBackingInfo())],
    "an SR-IOV network card": [vim.vm.device.VirtualSriovEthernetCard()],
    "": [PCI(backing=PCI.VmiopBackingInfo(vgpu="grid_v100-4q")), vim.vm.device.VirtualVmxnet3()],
}


@pytest.mark.parametrize("what", DEVICES)
def test_each_is_told_for_what_it_is(what: str) -> None:
    for device in DEVICES[what]:
        raw: dict[str, Any] = {"runtime.powerState": "poweredOn", "config.hardware.device": [device]}
        assert vm(raw, Outline(moid="vm-1", name="rdma-1")).fixed_devices == ((what,) if what else ())
