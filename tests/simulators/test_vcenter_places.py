"""The simulated vCenter has datacenters, clusters, datastores and folders, whose names may be there several times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyVim.connect import Disconnect
from pyVmomi import vim

from tests.support.physics import kind, on, suspend, worker, world_with
from tests.support.vcenter import connect, content_of
from vgpuctl.sim.inventory import HostSpec, v100
from vgpuctl.sim.vcenter.physics.estate import BadInventory
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session at the scenario with two datacenters."""
    with Estate(tmp_path_factory.mktemp("places") / "estate", "several-datacenters") as estate:
        instance = connect(estate)
        yield content_of(instance)
        Disconnect(instance)


def test_an_inventory_path_tells_vms_of_one_name_apart(places: Any) -> None:
    find = places.searchIndex.FindByInventoryPath
    worker, copy = find("dc-1/vm/team-a/gpu-1"), find("dc-2/vm/copies/gpu-1")
    assert worker.name == copy.name == "gpu-1"
    assert (worker.guest.hostName, copy.guest.hostName) == ("north-1", "copy-of-north-1")
    assert (worker.parent.name, worker.parent.parent.name) == ("team-a", "vm")
    assert find("dc-2/vm/team-b/day/gpu-6").parent.parent.name == "team-b"
    assert find("dc-1/vm/gpu-1") is None


def test_each_datacenter_has_a_cluster_a_datastore_and_a_network_of_its_own(places: Any) -> None:
    find = places.searchIndex.FindByInventoryPath
    found = [[find(f"dc-{n}/{path}") for path in ("host/gpu", "datastore/local", "network/VM Network")] for n in (1, 2)]
    for (cluster, store, network), host in zip(found, ("esx-a", "esx-b"), strict=True):
        assert [each.name for each in cluster.host] == [host]
        assert (store in cluster.datastore, network in cluster.network) == (True, True)
        assert cluster.resourcePool.owner == cluster
    assert len({each._moId for row in found for each in row}) == 6
    free = [store.summary.freeSpace >> 30 for _, store, _ in found]
    assert (free[1], free[0] > 1024) == (64, True)


def test_a_search_within_a_datacenter_finds_nothing_of_another(places: Any) -> None:
    index = places.searchIndex
    first, second = (index.FindByInventoryPath(f"dc-{n}") for n in (1, 2))
    worker = index.FindByInventoryPath("dc-1/vm/team-a/gpu-1")
    uuid = worker.config.uuid
    assert [index.FindByUuid(datacenter, uuid, True) for datacenter in (None, first, second)] == [worker, worker, None]
    assert [index.FindByDnsName(each, "esx-b", False) is not None for each in (first, second)] == [False, True]


def test_a_view_of_a_datacenter_has_its_own_vms(places: Any) -> None:
    sizes = {}
    for name in ("dc-1", "dc-2"):
        container = places.searchIndex.FindByInventoryPath(name)
        view = places.viewManager.CreateContainerView(container, [vim.VirtualMachine], True)
        sizes[name] = len(view.view)
    assert sizes == {"dc-1": 5, "dc-2": 6}


def clusters(*names: str) -> dict[str, Any]:
    """One host with a card in each of these clusters."""
    return {"host": tuple(HostSpec(f"esx-{n}", (v100(0),), cluster=name) for n, name in enumerate(names, start=1))}


def test_drs_places_no_vm_in_another_cluster() -> None:
    vms = [worker(name, vgpus=("grid_v100-16q",)) for name in "ab"]
    for names, refused in ((("gpu", "gpu"), None), (("gpu", "other"), "InsufficientGraphicsResourcesFault")):
        world = world_with(*vms, **clusters(*names), drs=True)
        assert kind(on(world, "a")) is None
        assert kind(on(world, "b")) == refused


def test_suspends_take_room_on_the_datastore_of_their_vm() -> None:
    vms = [worker("a"), worker("b", datastore="fast"), worker("c", suspend_datastore="fast")]
    world = world_with(*vms, datastores=(("fast", 16 << 10),), datastore_free_mib=16 << 10)
    for name in "abc":
        assert kind(on(world, name)) is None
    assert [kind(suspend(world, name)) for name in "abc"] == [None, None, "NoDiskSpace"]
    assert free(world) == {"store": 0, "fast": 0}
    assert kind(on(world, "b")) is None
    assert kind(suspend(world, "c")) is None
    assert free(world) == {"store": 0, "fast": 0}


def free(world: World) -> dict[str, int]:
    return {store.name: store.free_mib for store in world.estate.places.stores}


def test_no_two_vms_have_one_name_in_one_folder() -> None:
    with pytest.raises(BadInventory, match="twice in the folder team"):
        world_with(worker("a", folder="team"), worker("b", vm_name="a", folder="team"))
    world_with(worker("a", folder="team"), worker("b", vm_name="a", folder="other"))
