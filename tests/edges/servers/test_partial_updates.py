"""Partial updates: changes told as they nest, and put together again by the product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyVim.connect import Disconnect
from pyVmomi import vim

from tests.support.vcenter import PC, connect, content_of, vm_named, wait_for
from vgpuctl.testing import Estate
from vgpuctl.vsphere import partial_updates

PCI = vim.vm.device.VirtualPCIPassthrough
PATHS = ["runtime.powerState", "config.hardware.device", "config.extraConfig", "config.managedBy", "runtime.question"]


class Reader:
    """What it knows of one VM, from what it was told of it; `told` are the paths of the last answer."""

    def __init__(self, client: Any, vm: Any) -> None:
        self.vm, self._properties = vm, content_of(client).propertyCollector
        self._collector = self._properties.CreatePropertyCollector()
        self._spec = PC.FilterSpec(
            propSet=[PC.PropertySpec(type=vim.VirtualMachine, pathSet=PATHS)], objectSet=[PC.ObjectSpec(obj=vm)]
        )
        self._collector.CreateFilter(self._spec, partialUpdates=True)
        self._version, self.raw, self.told = "", dict[str, Any](), dict[str, str]()
        self.listen()

    def listen(self) -> dict[str, str]:
        update = self._collector.WaitForUpdatesEx(self._version, PC.WaitOptions(maxWaitSeconds=0))
        self._version = update.version if update else self._version
        changes = [each for part in update.filterSet for each in part.objectSet[0].changeSet] if update else []
        assert all(partial_updates.apply(self.raw, change) for change in changes)
        self.told = {change.name: str(change.op) for change in changes}
        return self.told

    def whole(self) -> dict[str, str]:
        (found,) = self._properties.RetrievePropertiesEx([self._spec], PC.RetrieveOptions()).objects
        return {each.name: shown(each.val) for each in found.propSet}

    def known(self) -> dict[str, str]:
        return {path: shown(value) for path, value in self.raw.items() if value is not None}


def shown(value: Any) -> str:
    return str([str(each) for each in value] if isinstance(value, list) else value)


@pytest.fixture
def reader(vgpu_estate: Estate) -> Iterator[Reader]:
    client = connect(vgpu_estate)
    yield Reader(client, vm_named(client, "worker-1"))
    Disconnect(client)


def reconfigured(vm: Any, *changes: Any, **more: Any) -> None:
    spec = vim.vm.ConfigSpec(deviceChange=list(changes), memoryReservationLockedToMax=True, **more)
    wait_for(vm.ReconfigVM_Task(spec))


def vgpu(vm: Any) -> Any:
    return next(each for each in vm.config.hardware.device if isinstance(each, PCI))


def change(operation: str, device: Any) -> Any:
    return vim.vm.device.VirtualDeviceSpec(operation=operation, device=device)


def new_vgpu(name: str) -> Any:
    return PCI(key=-1, backing=PCI.VmiopBackingInfo(vgpu=name))


def test_of_a_power_change_no_device_is_told_as_a_whole(reader: Reader) -> None:
    wait_for(reader.vm.PowerOn())
    assert reader.listen() == {
        "runtime.powerState": "assign",
        "config.hardware.device[4000].connectable": "assign",
    }
    assert reader.known() == reader.whole()


def test_devices_come_and_go_by_their_keys(reader: Reader) -> None:
    reconfigured(reader.vm, change("add", new_vgpu("grid_v100-4q")))
    first = vgpu(reader.vm)
    assert reader.listen()[f"config.hardware.device[{first.key}]"] == "add"
    assert reader.known() == reader.whole()
    reconfigured(reader.vm, change("remove", first), change("add", new_vgpu("grid_v100-8q")))
    reader.listen()
    assert "config.hardware.device" not in reader.told
    assert reader.known() == reader.whole()
    last = vgpu(reader.vm)
    reconfigured(reader.vm, change("remove", last))
    assert reader.listen()[f"config.hardware.device[{last.key}]"] == "remove"
    assert reader.known() == reader.whole()


def test_settings_are_told_one_by_one_and_their_keys_may_have_dots(reader: Reader) -> None:
    keys = ["pciPassthru.64bitMMIOSizeGB", "pciPassthru.use64bitMMIO"]
    for value in ("64", "128"):
        reconfigured(reader.vm, extraConfig=[vim.option.OptionValue(key=key, value=value) for key in keys])
        reader.listen()
        assert reader.known() == reader.whole()
    assert reader.told == {f'config.extraConfig["{key}"]': "assign" for key in keys}


def device(key: int, vgpu: str = "grid_v100-4q") -> Any:
    return PCI(key=key, backing=PCI.VmiopBackingInfo(vgpu=vgpu))


def told(name: str, op: str = "assign", val: Any = None) -> Any:
    return PC.Change(name=name, op=op, val=val)


def test_how_deep_a_server_goes_inside_is_its_own_affair() -> None:
    raw: dict[str, Any] = {"config.hardware.device": [device(1), device(2)]}
    assert partial_updates.apply(raw, told("config.hardware.device[2].backing.vgpu", val="grid_v100-8q"))
    assert partial_updates.apply(raw, told("config.hardware.device[3]", "add", device(3)))
    assert partial_updates.apply(raw, told("config.hardware.device[1]", "remove"))
    assert [(each.key, each.backing.vgpu) for each in raw["config.hardware.device"]] == [
        (2, "grid_v100-8q"),
        (3, "grid_v100-4q"),
    ]


def test_the_first_element_of_an_array_that_was_empty() -> None:
    raw: dict[str, Any] = {}
    option = vim.option.OptionValue(key="a.b", value="1")
    assert partial_updates.apply(raw, told('config.extraConfig["a.b"]', "add", option))
    assert raw == {"config.extraConfig": [option]}


def test_a_whole_that_is_gone_takes_its_parts_along() -> None:
    raw: dict[str, Any] = {"config.managedBy": vim.ext.ManagedByInfo(extensionKey="one", type="two")}
    assert partial_updates.apply(raw, told("config.managedBy.type", val="three"))
    assert raw["config.managedBy"].type == "three"
    assert partial_updates.apply(raw, told("config.managedBy", "indirectRemove"))
    assert raw == {"config.managedBy": None}


@pytest.mark.parametrize(
    "name",
    [
        "config.hardware.device[9].backing.vgpu",
        "config.hardware.device[1].unheardOf.vgpu",
        "config.hardware.device[1]..backing",
        "config.hardware.device[one]",
    ],
)
def test_what_finds_no_place_is_said_and_changes_nothing(name: str) -> None:
    raw: dict[str, Any] = {"config.hardware.device": [device(1)]}
    assert not partial_updates.apply(raw, told(name, val="grid_v100-8q"))
    assert str(raw["config.hardware.device"]) == str([device(1)])
