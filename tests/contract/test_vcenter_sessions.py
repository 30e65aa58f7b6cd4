"""Sessions and single questions: the same answers from our vCenter and vcsim, under pyVmomi."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyVim.connect import Disconnect
from pyVmomi import vim, vmodl

from tests.support.peers.vcenters import Client, Vcenter, through_view
from tests.support.vcenter import PC

WORKERS = {f"worker-{number}" for number in range(1, 6)}


@pytest.fixture
def workers(client: Client) -> Iterator[Any]:
    """A view of all VMs."""
    view = client.view(vim.VirtualMachine)
    yield view
    view.DestroyView()


def test_a_wrong_password_is_refused(vcenter: Vcenter) -> None:
    with pytest.raises(vim.fault.InvalidLogin):
        vcenter.connect("wrong")


def test_without_a_login_there_is_only_the_way_in(vcenter: Vcenter) -> None:
    instance = vim.ServiceInstance("ServiceInstance", vcenter.stub())
    content = instance.RetrieveContent()
    assert content.about.apiType == "VirtualCenter"
    views = content.viewManager
    assert views is not None
    with pytest.raises(vim.fault.NotAuthenticated) as refused:
        views.CreateContainerView(content.rootFolder, [vim.VirtualMachine], True)
    assert refused.value.privilegeId == "System.View"


def test_after_the_logout_nothing_of_the_session_is_left(client: Client) -> None:
    view = client.view(vim.VirtualMachine)
    Disconnect(client.instance)
    attempts: list[Callable[[], Any]] = [lambda: view.view, lambda: client.view(vim.VirtualMachine)]
    for attempt in attempts:
        with pytest.raises((vim.fault.NotAuthenticated, vmodl.fault.ManagedObjectNotFound)):
            attempt()


def test_views_are_the_sessions_own(vcenter: Vcenter, client: Client) -> None:
    view = client.view(vim.VirtualMachine)
    other = Client(vcenter)
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        type(view)(view._moId, other.instance._stub).DestroyView()
    other.close()


def test_the_present_session_says_who_it_is(vcenter: Vcenter, client: Client) -> None:
    session = client.content.sessionManager.currentSession
    assert vcenter.user in session.userName
    assert session.key


def test_sessions_are_ended_one_after_another_up_to_the_first_that_cannot_be(vcenter: Vcenter, client: Client) -> None:
    others = [vcenter.connect() for _ in range(2)]
    first, last = (other.content.sessionManager.currentSession.key for other in others)
    manager = client.content.sessionManager
    with pytest.raises(vim.fault.NotFound):
        manager.TerminateSession([first, "nobody's", last])
    left = {session.key for session in manager.sessionList}
    assert (first in left, last in left) == (False, True)
    with pytest.raises(vmodl.fault.InvalidArgument):
        manager.TerminateSession([last, manager.currentSession.key])
    assert last not in {session.key for session in manager.sessionList}
    for other in others:
        other._stub.DropConnections()


def test_an_unknown_method_is_a_method_not_found(vcenter: Vcenter) -> None:
    connection = http.client.HTTPSConnection("127.0.0.1", vcenter.port, context=vcenter.trust(), timeout=20)
    body = (
        '<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/"><Body><MakeCoffee xmlns="urn:vim25">'
        '<_this type="ServiceInstance">ServiceInstance</_this></MakeCoffee></Body></Envelope>'
    )
    connection.request("POST", "/sdk", body, {"Content-Type": "text/xml", "SOAPAction": '"urn:vim25/8.0"'})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == 500
    assert "faultcode" in text


def test_an_object_that_is_not_there(client: Client) -> None:
    nobody = vim.VirtualMachine("vm-9999", client.instance._stub)
    with pytest.raises(vmodl.fault.ManagedObjectNotFound) as refused:
        nobody.PowerOn(None)
    assert refused.value.obj == nobody
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        client.read(nobody, "name")


def test_leaves_of_all_vms_in_one_call(client: Client, workers: Any) -> None:
    paths = ["name", "runtime.powerState", "runtime.host", "config.uuid", "config.hardware.memoryMB", "config.template"]
    found = client.collector.RetrievePropertiesEx(
        [through_view(workers, {vim.VirtualMachine: paths})], PC.RetrieveOptions()
    )
    by_name = {}
    for one in found.objects:
        values = {each.name: each.val for each in one.propSet}
        by_name[values["name"]] = values
    assert by_name.keys() >= WORKERS
    assert all(set(values) == set(paths) for values in by_name.values())
    assert isinstance(by_name["worker-1"]["runtime.host"], vim.HostSystem)
    assert len(by_name["worker-1"]["config.uuid"]) == 36


@pytest.mark.parametrize("most", [1, 2, 100])
def test_pages_are_followed_by_their_token(client: Client, workers: Any, most: int) -> None:
    spec = through_view(workers, {vim.VirtualMachine: ["name"]})
    page = client.collector.RetrievePropertiesEx([spec], PC.RetrieveOptions(maxObjects=most))
    sizes, names = [len(page.objects)], [page.objects[0].propSet[0].val]
    while page.token:
        page = client.collector.ContinueRetrievePropertiesEx(page.token)
        sizes.append(len(page.objects))
    assert sum(sizes) == len(workers.view)
    assert max(sizes) == min(most, len(workers.view))
    assert names


def test_a_token_can_be_spent_once(client: Client, vcenter: Vcenter, workers: Any) -> None:
    vcenter.holds_not("vcsim", "its fault for a spent token is of a type that no vSphere has")
    spec = through_view(workers, {vim.VirtualMachine: ["name"]})
    token = client.collector.RetrievePropertiesEx([spec], PC.RetrieveOptions(maxObjects=1)).token
    client.collector.ContinueRetrievePropertiesEx(token)
    with pytest.raises((vmodl.query.InvalidProperty, vmodl.fault.InvalidArgument)):
        client.collector.ContinueRetrievePropertiesEx(token)


def test_a_path_that_no_type_has(client: Client, vcenter: Vcenter, workers: Any) -> None:
    vcenter.holds_not("vcsim", "it puts an unknown path into missingSet; a vCenter answers InvalidProperty")
    with pytest.raises(vmodl.query.InvalidProperty) as refused:
        client.collector.RetrieveProperties([through_view(workers, {vim.VirtualMachine: ["runtime.bogus"]})])
    assert refused.value.name == "runtime.bogus"


def test_an_unset_property_is_simply_absent(client: Client, workers: Any) -> None:
    spec = through_view(workers, {vim.VirtualMachine: ["name", "snapshot"]})
    found = client.collector.RetrieveProperties([spec])
    assert all([each.name for each in one.propSet] == ["name"] for one in found)
    assert not any(one.missingSet for one in found)


def test_a_view_knows_its_kinds_and_its_reach(client: Client) -> None:
    both = client.view(vim.VirtualMachine, vim.HostSystem).view
    assert {type(one) for one in both} == {vim.VirtualMachine, vim.HostSystem}
    shallow = client.content.viewManager.CreateContainerView(client.content.rootFolder, [vim.VirtualMachine], False)
    assert shallow.view == []
    shallow.DestroyView()
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        shallow.DestroyView()


def test_a_clusters_view_begins_with_its_hosts_and_its_pool(client: Client, vcenter: Vcenter) -> None:
    (cluster,) = client.view(vim.ClusterComputeResource).view
    view = client.content.viewManager.CreateContainerView(cluster, [], False)
    kinds = {type(one) for one in view.view}
    view.DestroyView()
    assert {vim.HostSystem, vim.ResourcePool} <= kinds
    vcenter.holds_not("vcsim", "it leaves out the hosts' VMs, which the API reference names")
    assert vim.VirtualMachine in kinds


def test_the_ways_to_find_a_vm(client: Client) -> None:
    vm = client.vm("worker-2")
    index = client.content.searchIndex
    (datacenter,) = client.view(vim.Datacenter).view
    where = client.read(datacenter, "name")
    assert index.FindByInventoryPath(f"/{where}/vm/worker-2") == vm
    assert index.FindByInventoryPath(f"{where}/vm/nobody") is None
    assert index.FindByUuid(None, client.read(vm, "config.uuid"), True) == vm
    assert index.FindByUuid(None, "00000000-0000-0000-0000-000000000000", True) is None
    assert index.FindChild(client.read(datacenter, "vmFolder"), "worker-2") == vm


def test_every_vm_has_its_way_up_to_the_root(client: Client) -> None:
    thing, seen = client.vm("worker-1"), []
    while thing is not None:
        seen.append(type(thing).__name__)
        thing = client.read(thing, "parent")
    assert seen == ["vim.VirtualMachine", "vim.Folder", "vim.Datacenter", "vim.Folder"]


def test_cards_say_what_they_are(client: Client) -> None:
    (host,) = client.view(vim.HostSystem).view
    (card,) = client.read(host, "config.graphicsInfo")
    assert (card.graphicsType, card.memorySizeInKB, list(card.vm)) == ("sharedDirect", 16 << 20, [])
    assert {"grid_v100-4q", "grid_v100-16q"} <= set(client.read(host, "config.sharedPassthruGpuTypes"))
