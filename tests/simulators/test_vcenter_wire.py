"""The simulated vCenter over its protocol: pyVmomi as client, unmodified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyVim.connect import Disconnect
from pyVmomi import VmomiSupport, vim, vmodl

from tests.support.fleets import QUARTER
from tests.support.vcenter import PC, add_vgpu, connect, content_of, stub, view_filter, vm_named
from vgpuctl.sim.vcenter.wire.dispatch import HANDLERS
from vgpuctl.sim.vcenter.wire.metadata import NAMESPACE
from vgpuctl.sim.vcenter.wire.requests import FETCH
from vgpuctl.testing import Estate

# Logging in


def test_a_wrong_password_is_refused(estate: Estate) -> None:
    with pytest.raises(vim.fault.InvalidLogin):
        connect(estate, password="no")


def test_without_a_session_only_the_front_door_is_open(estate: Estate) -> None:
    instance = vim.ServiceInstance("ServiceInstance", stub(estate))
    assert instance.RetrieveContent().about.apiType == "VirtualCenter"
    for refused in (instance.CurrentTime, lambda: vim.VirtualMachine("vm-1", instance._stub).PowerOn(None)):
        with pytest.raises(vim.fault.NotAuthenticated):
            refused()
    instance._stub.DropConnections()


def test_a_session_ends_with_its_logout_and_takes_its_views_along(estate: Estate, client: Any) -> None:
    content = content_of(client)
    assert content.sessionManager.currentSession.userName == estate.logins.user
    view = content.viewManager.CreateContainerView(content.rootFolder, [], True)
    other = connect(estate)
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vim.view.ContainerView(view._moId, other._stub).Destroy()
    Disconnect(other)
    content.sessionManager.Logout()
    with pytest.raises(vim.fault.NotAuthenticated):
        client.CurrentTime()
    client._stub.DropConnections()


def test_calls_are_counted_by_their_names_on_the_wire(estate: Estate, client: Any) -> None:
    estate.calls()
    assert vm_named(client, "worker-1").name == "worker-1"
    assert estate.calls()["vcenter"] == {"Fetch": 1, "FindByInventoryPath": 1, "RetrieveServiceContent": 1}


# Reading


def test_one_call_reads_the_leaves_of_all_hosts_and_vms(client: Any) -> None:
    content = content_of(client)
    spec = view_filter(
        content,
        {
            vim.HostSystem: ["name", "config.graphicsInfo", "config.graphicsConfig", "hardware.memorySize"],
            vim.VirtualMachine: ["name", "runtime.powerState", "config.uuid", "runtime.host", "summary.guest"],
        },
    )
    found = content.propertyCollector.RetrievePropertiesEx([spec], PC.RetrieveOptions())
    by_name = {}
    for each in found.objects:
        properties = {one.name: one.val for one in each.propSet}
        by_name[properties["name"]] = properties
        assert not each.missingSet
    assert len(by_name) == 12
    assert by_name["infra-1"]["runtime.powerState"] == "poweredOn"
    assert isinstance(by_name["infra-1"]["runtime.powerState"], vim.VirtualMachine.PowerState)
    assert isinstance(by_name["worker-1"]["runtime.host"], vim.HostSystem)
    assert by_name["esx-1"]["config.graphicsConfig"].sharedPassthruAssignmentPolicy == "performance"
    assert isinstance(by_name["esx-1"]["hardware.memorySize"], VmomiSupport.long)
    assert [card.pciId for card in by_name["esx-1"]["config.graphicsInfo"]] == ["0000:3b:00.0", "0000:3c:00.0"]


@pytest.mark.parametrize("unasked", [True, False])
def test_pages_are_followed_by_their_token(estate: Estate, client: Any, unasked: bool) -> None:
    if unasked:
        estate.within(lambda world: setattr(world.center, "page_limit", 5))
    content = content_of(client)
    spec = view_filter(content, {vim.VirtualMachine: ["name"]})
    options = PC.RetrieveOptions(maxObjects=None if unasked else 5)
    page = content.propertyCollector.RetrievePropertiesEx([spec], options)
    sizes, names = [len(page.objects)], [one.propSet[0].val for one in page.objects]
    while page.token:
        page = content.propertyCollector.ContinueRetrievePropertiesEx(page.token)
        sizes.append(len(page.objects))
        names += [one.propSet[0].val for one in page.objects]
    assert sizes == [5, 5, 1]
    assert len(set(names)) == 11


def test_a_token_is_good_once_and_can_be_given_back(client: Any) -> None:
    collector = content_of(client).propertyCollector
    spec = view_filter(content_of(client), {vim.VirtualMachine: ["name"]})
    tokens = [collector.RetrievePropertiesEx([spec], PC.RetrieveOptions(maxObjects=5)).token for _ in range(2)]
    collector.ContinueRetrievePropertiesEx(tokens[0])
    collector.CancelRetrievePropertiesEx(tokens[1])
    for token in (*tokens, "made up"):
        for attempt in (collector.ContinueRetrievePropertiesEx, collector.CancelRetrievePropertiesEx):
            with pytest.raises(vmodl.fault.InvalidArgument):
                attempt(token)
    with pytest.raises(vmodl.fault.InvalidArgument):
        collector.RetrievePropertiesEx([spec], PC.RetrieveOptions(maxObjects=0))


@pytest.mark.parametrize("tolerant", [True, False])
def test_an_object_that_is_not_there_spoils_a_request_unless_it_may(client: Any, tolerant: bool) -> None:
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.VirtualMachine, pathSet=["name"])],
        objectSet=[PC.ObjectSpec(obj=vm) for vm in (vim.VirtualMachine("vm-999"), vm_named(client, "worker-1"))],
        reportMissingObjectsInResults=tolerant,
    )
    collector = content_of(client).propertyCollector
    if tolerant:
        assert [one.propSet[0].val for one in collector.RetrieveProperties([spec])] == ["worker-1"]
    else:
        with pytest.raises(vmodl.fault.ManagedObjectNotFound):
            collector.RetrieveProperties([spec])


def test_the_index_finds_by_path_uuid_and_name(client: Any) -> None:
    index = content_of(client).searchIndex
    vm, host = vm_named(client, "worker-1"), index.FindByInventoryPath("/dc/host/gpu/esx-1")
    dc = vm.parent.parent
    assert (vm.name, host.name) == ("worker-1", "esx-1")
    for path in ("dc/vm/nobody", "dc/nothing/worker-1", "elsewhere"):
        assert index.FindByInventoryPath(path) is None
    assert index.FindByUuid(dc, vm.config.uuid.upper(), True, False) == vm
    assert index.FindByUuid(None, vm.config.instanceUuid, True, True) == vm
    assert index.FindByUuid(None, host.hardware.systemInfo.uuid, False) == host
    assert index.FindByUuid(None, vm.config.uuid, False) is None
    assert index.FindAllByUuid(None, vm.config.uuid, True, False) == [vm]
    assert index.FindByDnsName(dc, "worker-1", True) == vm
    assert index.FindAllByDnsName(None, "esx-1", False) == [host]
    assert index.FindByDnsName(None, "esx-1", True) is None
    assert index.FindChild(vm.parent, "worker-1") == vm
    assert index.FindChild(vm.parent, "nobody") is None
    attempts: list[Callable[[], Any]] = [
        lambda: index.FindByUuid(vim.Datacenter("x"), "u", True),
        lambda: index.FindChild(vim.Folder("x"), "y"),
    ]
    for unknown in attempts:
        with pytest.raises(vmodl.fault.ManagedObjectNotFound):
            unknown()


def test_a_path_that_no_type_has_is_an_invalid_property(client: Any) -> None:
    content = content_of(client)
    for kind, path in ((vim.VirtualMachine, "runtime.bogus"), (vim.HostSystem, "bogus")):
        with pytest.raises(vmodl.query.InvalidProperty) as refused:
            content.propertyCollector.RetrieveProperties([view_filter(content, {kind: [path]})])
        assert refused.value.name == path


def test_an_unset_property_is_simply_absent(client: Any) -> None:
    content = content_of(client)
    spec = view_filter(content, {vim.VirtualMachine: ["name", "runtime.bootTime", "snapshot"]})
    found = content.propertyCollector.RetrieveProperties([spec])
    booted = {one.propSet[0].val: {each.name for each in one.propSet} for one in found}
    assert booted["infra-1"] == {"name", "runtime.bootTime"}
    assert booted["worker-1"] == {"name"}


def test_devices_can_be_read_whole_and_by_key(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    add_vgpu(vm, QUARTER)
    device = vm.config.hardware.device[-1]
    assert device.backing.vgpu == QUARTER
    path = f"config.hardware.device[{device.key}].backing.vgpu"
    content = content_of(client)
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.VirtualMachine, pathSet=[path])], objectSet=[PC.ObjectSpec(obj=vm)]
    )
    assert content.propertyCollector.RetrieveProperties([spec])[0].propSet[0].val == QUARTER


def test_every_property_of_every_thing_can_be_sent(client: Any) -> None:
    content = content_of(client)
    kinds = [
        vim.VirtualMachine,
        vim.HostSystem,
        vim.Folder,
        vim.Datacenter,
        vim.ClusterComputeResource,
        vim.ResourcePool,
        vim.Datastore,
        vim.Network,
    ]
    view = content.viewManager.CreateContainerView(content.rootFolder, kinds, True)
    assert {type(one) for one in view.view} == set(kinds)
    walk = PC.TraversalSpec(type=vim.view.ContainerView, path="view")
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.ManagedEntity, all=True)],
        objectSet=[PC.ObjectSpec(obj=view, skip=True, selectSet=[walk])],
    )
    found = content.propertyCollector.RetrieveProperties([spec])
    assert len(found) == len(view.view)
    assert all({"name", "parent"} <= {each.name for each in one.propSet} for one in found)


def test_a_clusters_view_has_its_hosts_and_their_vms_recursive_or_not(client: Any) -> None:
    content = content_of(client)
    views = content.viewManager
    (cluster,) = views.CreateContainerView(content.rootFolder, [vim.ClusterComputeResource], True).view
    for recursive in (False, True):
        found = views.CreateContainerView(cluster, [], recursive).view
        assert {type(one) for one in found} == {vim.HostSystem, vim.ResourcePool, vim.VirtualMachine}
        assert {one.name for one in found if isinstance(one, vim.HostSystem)} == {"esx-1"}
        assert len({one for one in found if isinstance(one, vim.VirtualMachine)}) == 11
    host = next(one for one in found if isinstance(one, vim.HostSystem))
    assert {type(one) for one in views.CreateContainerView(host, [], False).view} == {vim.VirtualMachine}


def test_every_handler_takes_what_its_metadata_say() -> None:
    assert len(HANDLERS) > 40
    for method, handler in HANDLERS.items():
        info = FETCH if method == "Fetch" else VmomiSupport.GetWsdlMethod(NAMESPACE, method).info
        code = handler.__code__
        assert code.co_argcount == len(info.params) + 1, method
