"""VMs come and go at the simulated vCenter, and everything that lists VMs follows."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim, vmodl

from tests.support.fleets import QUARTER
from tests.support.vcenter import PC, add_vgpu, content_of, values, view_filter, vm_named, wait_for
from vgpuctl.testing import Estate


def clone(client: Any, source: str, name: str, **wishes: Any) -> Any:
    vm = vm_named(client, source)
    spec = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(), template=False, powerOn=False)
    for wish, value in wishes.items():
        setattr(spec, wish, value)
    return wait_for(vm.CloneVM_Task(vm.parent, name, spec))


def names(view: Any) -> set[str]:
    return {vm.name for vm in view.view}


def test_a_clone_has_what_its_source_has_and_a_name_of_its_own(client: Any) -> None:
    source = vm_named(client, "worker-1")
    add_vgpu(source, QUARTER)
    done = clone(client, "worker-1", "copy", powerOn=True, config=vim.vm.ConfigSpec(numCPUs=3, annotation="mine"))
    copy = vm_named(client, "copy")
    assert (done.state, done.result) == ("success", copy)
    assert copy.runtime.host == source.runtime.host
    assert copy.config.hardware.device[-1].backing.vgpu == QUARTER
    assert (copy.config.hardware.numCPU, copy.config.annotation) == (3, "mine")
    assert copy.config.uuid != source.config.uuid
    assert copy.recentTask[-1].info.descriptionId == "VirtualMachine.powerOn"


def test_a_running_vm_is_not_destroyed_and_one_that_is_off_is_gone_for_good(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    wait_for(vm.PowerOn())
    assert isinstance(wait_for(vm.Destroy_Task()).error, vim.fault.InvalidPowerState)
    wait_for(vm.PowerOff())
    assert wait_for(vm.Destroy_Task()).state == "success"
    assert vm_named(client, "worker-1") is None
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vm.PowerOn()


def test_no_two_vms_have_one_name(client: Any) -> None:
    refused = clone(client, "worker-1", "worker-2").error
    assert isinstance(refused, vim.fault.DuplicateName)
    assert refused.object == vm_named(client, "worker-2")


def test_a_suspended_vm_is_not_copied_but_can_be_destroyed(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    wait_for(vm.PowerOn())
    wait_for(vm.Suspend())
    assert isinstance(clone(client, "worker-1", "copy").error, vim.fault.InvalidPowerState)
    assert wait_for(vm.Destroy_Task()).state == "success"


def test_what_a_clone_cannot_have_is_refused(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    everything = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(), template=True, powerOn=False)
    linked = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(diskMoveType="x"), template=False, powerOn=False)
    for spec in (everything, linked):
        with pytest.raises(vmodl.fault.NotSupported):
            vm.CloneVM_Task(vm.parent, "copy", spec)
    elsewhere = vim.vm.RelocateSpec(host=vim.HostSystem("host-9"))
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vm.CloneVM_Task(vm.parent, "copy", vim.vm.CloneSpec(location=elsewhere, template=False, powerOn=False))


def test_all_that_lists_vms_follows(client: Any) -> None:
    content = content_of(client)
    vm = vm_named(client, "worker-1")
    holders = [vm.parent, vm.resourcePool, vm.runtime.host, vm.datastore[0], vm.network[0]]
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
    before = names(view)
    clone(client, "worker-1", "copy")
    copy = vm_named(client, "copy")
    assert names(view) == before | {"copy"}
    for holder in holders:
        children = holder.childEntity if isinstance(holder, vim.Folder) else holder.vm
        assert copy in children, holder
    wait_for(copy.Destroy_Task())
    assert names(view) == before


@pytest.mark.parametrize("start", ["view", "folder"])
def test_a_filter_is_told_who_enters_and_who_leaves(client: Any, start: str) -> None:
    content = content_of(client)
    spec = view_filter(content, {vim.VirtualMachine: ["name"]})
    if start == "folder":
        walk = PC.TraversalSpec(type=vim.Folder, path="childEntity")
        folder = vm_named(client, "worker-1").parent
        spec.objectSet = [PC.ObjectSpec(obj=folder, skip=True, selectSet=[walk])]
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(spec, False)
    first = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0))
    assert len(first.filterSet[0].objectSet) == 11
    copy = clone(client, "worker-1", "copy").result
    came = collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=10))
    (update,) = came.filterSet[0].objectSet
    assert (update.kind, update.obj, values(update)) == ("enter", copy, {"name": "copy"})
    wait_for(copy.Destroy_Task())
    went = collector.WaitForUpdatesEx(came.version, PC.WaitOptions(maxWaitSeconds=10))
    assert [(update.kind, update.obj) for update in went.filterSet[0].objectSet] == [("leave", copy)]


def test_a_copys_guest_is_told_of_its_power_as_any_other(estate: Estate, client: Any) -> None:
    clone(client, "infra-1", "copy", powerOn=True)
    copy = vm_named(client, "copy")
    if copy.runtime.powerState != "poweredOn":
        wait_for(copy.recentTask[-1])
    estate.advance(5)
    assert estate.within(lambda world: world.kubernetes.running("copy"))
    assert copy.guest.toolsRunningStatus == "guestToolsRunning"
    copy.ShutdownGuest()
    estate.advance(5)
    assert copy.runtime.powerState == "poweredOff"
