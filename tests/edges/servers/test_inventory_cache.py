"""A VM, host or task of vCenter that cannot be read: what is assumed instead is safe, and the others are as before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from vgpuctl.model.fleet import Power
from vgpuctl.vsphere.inventory_cache import InventoryCache
from vgpuctl.vsphere.views import UNKNOWN_VGPU

PCI = vim.vm.device.VirtualPCIPassthrough
HOST = vim.HostSystem("host-1")
VM: dict[str, Any] = {
    "name": "worker-1",
    "runtime.host": HOST,
    "runtime.powerState": "poweredOff",
    "config.uuid": "u-1",
}
TASK = {"info.key": "task-1", "info.entity": vim.VirtualMachine("vm-1")}
TASK |= {"info.descriptionId": "VirtualMachine.suspend"}


def take(shelves: InventoryCache, obj: Any, kind: str = "enter", /, **given: Any) -> None:
    """pyVmomi's own types refuse many a value that a server may send."""
    changes = [SimpleNamespace(name=name, op="assign", val=value) for name, value in given.items()]
    shelves.apply(SimpleNamespace(obj=obj, kind=kind, changeSet=changes))


def vgpu(kind: str | None) -> Any:
    return PCI(key=1, backing=PCI.VmiopBackingInfo(vgpu=kind))


def found(number: int = 1, /, **more: Any) -> InventoryCache:
    """One VM and one host, and whatever more is said of the VM."""
    shelves = InventoryCache()
    take(shelves, HOST, name="esx-1")
    take(shelves, vim.VirtualMachine(f"vm-{number}"), **{**VM, **more})
    return shelves


def test_what_can_be_read_is_not_named() -> None:
    shelves = found()
    assert (shelves.vms()["vm-1"].unreadable, set(shelves.hosts()), shelves.unreadable()) == ("", {"host-1"}, {})


@pytest.mark.parametrize(
    ("more", "power", "vgpus"),
    [
        ({"runtime.powerState": "crashed"}, Power.ON, ()),
        ({"config.hardware.memoryMB": "much"}, Power.OFF, ()),
        ({"config.hardware.device": [vgpu(None)]}, Power.OFF, (UNKNOWN_VGPU,)),
        ({"config.hardware.device": 7}, Power.OFF, (UNKNOWN_VGPU,)),
        ({"config.hardware.memoryMB": "much", "config.hardware.device": [vgpu("grid_v100-4q")]}, Power.OFF, None),
    ],
)
def test_a_vm_that_cannot_be_read_takes_the_most_that_it_can(more: Any, power: Power, vgpus: Any) -> None:
    shelves = found(**more)
    take(shelves, vim.VirtualMachine("vm-2"), **{**VM, "name": "worker-2"})
    lost, other = (shelves.vms()[moid] for moid in ("vm-1", "vm-2"))
    assert (lost.outline.name, lost.outline.host, lost.uuid) == ("worker-1", "host-1", "u-1")
    assert (lost.power, lost.vgpus) == (power, ("grid_v100-4q",) if vgpus is None else vgpus)
    assert lost.unreadable and not other.unreadable
    (named,) = shelves.unreadable().values()
    assert (named.kind, named.name, named.why) == ("vm", "worker-1", lost.unreadable)


def test_once_it_can_be_read_it_is_named_no_more() -> None:
    shelves = found(**{"runtime.powerState": "crashed"})
    assert shelves.vms()["vm-1"].unreadable
    take(shelves, vim.VirtualMachine("vm-1"), "modify", **{"runtime.powerState": "poweredOn"})
    assert (shelves.vms()["vm-1"].unreadable, shelves.unreadable()) == ("", {})


def test_once_it_is_gone_it_is_named_no_more() -> None:
    shelves = found(**{"runtime.powerState": "crashed"})
    shelves.vms()
    take(shelves, vim.VirtualMachine("vm-1"), "leave")
    assert (shelves.vms(), shelves.unreadable()) == ({}, {})


def test_one_whose_place_cannot_be_read_is_not_trusted_for_its_details() -> None:
    shelves = InventoryCache()
    loop = vim.Folder("group-1")
    take(shelves, loop, name="gpu", parent=loop)
    take(shelves, vim.VirtualMachine("vm-1"), **VM, parent=loop)
    assert shelves.vms()["vm-1"].unreadable.startswith("RecursionError")


def test_a_host_that_cannot_be_read_has_no_cards() -> None:
    shelves = found()
    take(shelves, HOST, **{"config.graphicsInfo": [SimpleNamespace(pciId="0000:3b:00.0", deviceName=None)]})
    host = shelves.hosts()["host-1"]
    assert (host.name, host.cards) == ("esx-1", ())
    assert [(each.kind, each.name) for each in shelves.unreadable().values()] == [("host", "esx-1")]


@pytest.mark.parametrize(
    ("state", "running"), [("running", True), ("queued", True), ("odd", True), ("success", False), ("error", False)]
)
def test_the_vm_of_a_task_that_cannot_be_read_is_busy_unless_it_ended(state: str, running: bool) -> None:
    shelves = found()
    take(shelves, vim.Task("task-1"), **{**TASK, "info.state": state, "info.error": _Unexplained()})
    (task,) = shelves.tasks()["vm-1"]
    assert (task.running, task.kind) == (running, "a task that cannot be read")
    assert [each.kind for each in shelves.unreadable().values()] == ["task"]


def test_a_task_in_a_state_that_nobody_knows_is_not_over() -> None:
    shelves = found()
    take(shelves, vim.Task("task-1"), **{**TASK, "info.state": "paused"})
    assert [task.running for task in shelves.tasks()["vm-1"]] == [True]


def test_datastores_of_one_name_are_told_apart_by_the_host_that_sees_them() -> None:
    shelves, other = InventoryCache(), vim.HostSystem("host-2")
    for number, host in ((1, HOST), (2, other)):
        store = vim.Datastore(f"ds-{number}")
        take(shelves, host, name=f"esx-{number}", datastore=[store])
        where = {"config.files.vmPathName": "[local] a/a.vmx"}
        take(shelves, vim.VirtualMachine(f"vm-{number}"), **{**VM, "runtime.host": host, **where})
        take(shelves, store, **{"name": "local", "summary.freeSpace": number << 30})
        before = {moid: vm.datastore for moid, vm in shelves.vms().items()}
        assert before == {f"vm-{n}": "local" if number == 1 else f"local (ds-{n})" for n in range(1, number + 1)}
    assert shelves.datastores() == {"local (ds-1)": 1024, "local (ds-2)": 2048}
    take(shelves, vim.Datastore("ds-2"), "leave")
    assert (shelves.vms()["vm-1"].datastore, shelves.datastores()) == ("local", {"local": 1024})


@pytest.mark.parametrize(
    ("directory", "written_to"),
    [(None, "fast"), ("[big] sleepers/", "big"), ("[big]", "big"), ("/vmfs/volumes/big/sleepers", "")],
)
def test_a_suspend_writes_into_the_vms_suspend_directory(directory: str | None, written_to: str) -> None:
    paths: dict[str, Any] = {"config.files.vmPathName": "[fast] a/a.vmx"}
    if directory is not None:
        paths["config.files.suspendDirectory"] = directory
    assert found(**paths).vms()["vm-1"].datastore == written_to


class _Unexplained:
    @property
    def msg(self) -> str:
        raise ValueError("no text")


def test_datastores_and_clusters_that_cannot_be_read_are_left_out() -> None:
    shelves, cluster = found(), vim.ClusterComputeResource("domain-1")
    take(shelves, vim.Datastore("ds-1"), **{"name": "odd", "summary.freeSpace": "much"})
    take(shelves, vim.Datastore("ds-2"), **{"name": "good", "summary.freeSpace": 1 << 30})
    ha = SimpleNamespace(enabled=True, admissionControlEnabled=True, admissionControlPolicy=None, failoverLevel="two")
    take(shelves, cluster, name="gpu", configurationEx=SimpleNamespace(dasConfig=ha))
    take(shelves, HOST, "modify", parent=cluster)
    assert shelves.datastores() == {"good": 1024}
    assert (shelves.hosts()["host-1"].cluster, shelves.hosts()["host-1"].admission) == ("gpu", None)
    assert {(each.kind, each.name) for each in shelves.unreadable().values()} == {
        ("datastore", "odd"),
        ("cluster", "gpu"),
    }
