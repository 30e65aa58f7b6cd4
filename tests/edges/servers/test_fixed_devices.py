"""Devices and settings with which no VM can be suspended, as vCenter reports them."""

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


@pytest.mark.parametrize(
    ("key", "value", "forbids"),
    [
        ("pciPassthru0.cfg.enable_uvm", "1", True),
        ("pciPassthru1.cfg.enable_debugging", "TRUE", True),
        ("pcipassthru15.cfg.enable_profiling", "1", True),
        ("pciPassthru0.cfg.enable_uvm", "0", False),
        ("pciPassthru0.cfg.enable_uvm", "FALSE", False),
        ("pciPassthru.use64bitMMIO", "TRUE", False),
        ("pciPassthru0.cfg.frame_rate_limiter", "1", False),
    ],
)
def test_settings_that_forbid_a_suspend_are_read(key: str, value: str, forbids: bool) -> None:
    settings = [vim.option.OptionValue(key=key, value=value)]
    raw: dict[str, Any] = {"runtime.powerState": "poweredOn", "config.extraConfig": settings}
    seen = vm(raw, Outline(moid="vm-1", name="cuda-1"))
    assert seen.tracing == ((key,) if forbids else ())
    assert seen.mmio is None, "firmware was not asked for"
