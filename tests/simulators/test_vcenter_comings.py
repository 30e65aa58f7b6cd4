"""VMs come and go at the simulated vCenter, and everything that lists VMs follows."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim, vmodl

from tests.support.vcenter import PC, content_of, values, view_filter, vm_named, wait_for
from vgpuctl.sim.inventory import VmSpec
from vgpuctl.testing import Estate


def comes(estate: Estate, client: Any) -> Any:
    """Return a VM that is new in vCenter."""
    estate.within(lambda world: world.estate.add(VmSpec("new", "esx-1")))
    return vm_named(client, "new")


def names(view: Any) -> set[str]:
    return {vm.name for vm in view.view}


def test_a_running_vm_is_not_destroyed_and_one_that_is_off_is_gone_for_good(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    wait_for(vm.PowerOn())
    assert isinstance(wait_for(vm.Destroy_Task()).error, vim.fault.InvalidPowerState)
    wait_for(vm.PowerOff())
    assert wait_for(vm.Destroy_Task()).state == "success"
    assert vm_named(client, "worker-1") is None
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vm.PowerOn()


def test_a_suspended_vm_can_be_destroyed(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    wait_for(vm.PowerOn())
    wait_for(vm.Suspend())
    assert wait_for(vm.Destroy_Task()).state == "success"


def test_only_vms_are_destroyed_and_none_is_cloned(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    spec = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(), template=False, powerOn=False)
    for write in (vm.runtime.host.Destroy_Task, lambda: vm.CloneVM_Task(vm.parent, "copy", spec)):
        with pytest.raises(vmodl.fault.NotSupported):
            write()


def test_all_that_lists_vms_follows(estate: Estate, client: Any) -> None:
    content = content_of(client)
    vm = vm_named(client, "worker-1")
    holders = [vm.parent, vm.resourcePool, vm.runtime.host, vm.datastore[0], vm.network[0]]
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
    before = names(view)
    new = comes(estate, client)
    assert names(view) == before | {"new"}
    for holder in holders:
        children = holder.childEntity if isinstance(holder, vim.Folder) else holder.vm
        assert new in children, holder
    wait_for(new.Destroy_Task())
    assert names(view) == before


@pytest.mark.parametrize("start", ["view", "folder"])
def test_a_filter_reports_each_vm_that_enters_and_leaves(estate: Estate, client: Any, start: str) -> None:
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
    new = comes(estate, client)
    came = collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=10))
    (update,) = came.filterSet[0].objectSet
    assert (update.kind, update.obj, values(update)) == ("enter", new, {"name": "new"})
    wait_for(new.Destroy_Task())
    went = collector.WaitForUpdatesEx(came.version, PC.WaitOptions(maxWaitSeconds=10))
    assert [(update.kind, update.obj) for update in went.filterSet[0].objectSet] == [("leave", new)]


def test_the_guest_of_a_new_vm_follows_its_power_as_any_other(estate: Estate, client: Any) -> None:
    new = comes(estate, client)
    wait_for(new.PowerOn())
    estate.advance(5)
    assert estate.within(lambda world: world.kubernetes.running("new"))
    assert new.guest.toolsRunningStatus == "guestToolsRunning"
    new.ShutdownGuest()
    estate.advance(5)
    assert new.runtime.powerState == "poweredOff"


def test_recent_tasks_say_which_user_began_them(estate: Estate, client: Any) -> None:
    manager = content_of(client).taskManager
    vms = [vm_named(client, f"worker-{number}") for number in (1, 2)]
    for vm in (vms[0], vms[0], vms[1]):
        wait_for(vm.PowerOn())
    estate.within(lambda world: world.estate.power_off(world.estate.vms["worker-1"]))
    assert [task.info.entity for task in manager.recentTask] == [vms[0], vms[0], vms[1], vms[0]]
    users = [task.info.reason.userName for task in manager.recentTask]
    assert users == [*[estate.logins.user] * 3, ""]
    estate.advance(700)
    assert not manager.recentTask
