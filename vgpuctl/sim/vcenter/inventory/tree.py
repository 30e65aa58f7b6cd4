"""The inventory around hosts and VMs. It is fixed; only VMs are created and destroyed in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.vcenter.inventory import drs_properties, ha_properties, refs
from vgpuctl.sim.vcenter.inventory.objects import InventoryObject, PropertyTable
from vgpuctl.sim.vcenter.physics.estate import DATACENTER, Estate
from vgpuctl.sim.vcenter.wire.vmomi import vim

_TIB = 1 << 40


def tree(estate: Estate) -> Iterator[InventoryObject]:
    yield from _folders(estate)
    yield _datacenter()
    yield from _compute(estate)
    yield from _storage_and_network(estate)


def _folders(estate: Estate) -> Iterator[InventoryObject]:
    # vSphere: the root folder is named so. Paths of objects leave it out.
    yield _thing(refs.ROOT, "Datacenters", None, childEntity=[refs.DC], childType=["Folder", "Datacenter"])
    yield _folder(refs.VM_FOLDER, "vm", _vms, "VirtualMachine")
    yield _folder(refs.HOST_FOLDER, "host", [refs.CLUSTER], "ComputeResource")
    yield _folder(refs.STORE_FOLDER, "datastore", [refs.STORE], "Datastore")
    yield _folder(refs.NETWORK_FOLDER, "network", [refs.NETWORK], "Network")


def _datacenter() -> InventoryObject:
    return _thing(
        refs.DC,
        DATACENTER[1],
        refs.ROOT,
        vmFolder=refs.VM_FOLDER,
        hostFolder=refs.HOST_FOLDER,
        datastoreFolder=refs.STORE_FOLDER,
        networkFolder=refs.NETWORK_FOLDER,
        datastore=[refs.STORE],
        network=[refs.NETWORK],
        configuration=vim.Datacenter.ConfigInfo(),
    )


def _compute(estate: Estate) -> Iterator[InventoryObject]:
    hosts = refs.of_all(estate.hosts.values())
    yield _thing(
        refs.CLUSTER,
        estate.inventory.cluster,
        refs.HOST_FOLDER,
        host=hosts,
        datastore=[refs.STORE],
        network=[refs.NETWORK],
        resourcePool=refs.POOL,
        environmentBrowser=refs.ENVIRONMENT_BROWSER,
        configurationEx=lambda context, _: drs_properties.configuration(context.estate),
        summary=lambda context, _: _cluster_summary(context.estate),
    )
    yield InventoryObject(refs.ENVIRONMENT_BROWSER, PropertyTable(), None)
    yield _thing(
        refs.POOL,
        "Resources",
        refs.CLUSTER,
        owner=refs.CLUSTER,
        resourcePool=[],
        vm=_vms,
        config=_unlimited(),
        summary=vim.ResourcePool.Summary(name="Resources", config=_unlimited(), runtime=_pool_runtime()),
        runtime=_pool_runtime(),
    )


def _cluster_summary(estate: Estate) -> Any:
    hosts = len(estate.hosts)
    return vim.ClusterComputeResource.Summary(
        numHosts=hosts,
        numEffectiveHosts=hosts,
        overallStatus="green",
        admissionControlInfo=ha_properties.state(estate),
    )


def _unlimited() -> Any:
    shares = vim.SharesInfo(shares=4000, level="normal")
    allocation = vim.ResourceAllocationInfo(reservation=0, expandableReservation=True, limit=-1, shares=shares)
    return vim.ResourceConfigSpec(entity=refs.POOL, cpuAllocation=allocation, memoryAllocation=allocation)


def _pool_runtime() -> Any:
    usage = vim.ResourcePool.ResourceUsage()
    return vim.ResourcePool.RuntimeInfo(memory=usage, cpu=usage, overallStatus="green")


def _storage_and_network(estate: Estate) -> Iterator[InventoryObject]:
    store = _thing(refs.STORE, estate.store.name, refs.STORE_FOLDER, vm=_vms)
    store.table("summary")(lambda context, _: _store_summary(context.estate))
    yield store
    network = vim.Network.Summary(network=refs.NETWORK, name="VM Network", accessible=True)
    hosts = refs.of_all(estate.hosts.values())
    yield _thing(refs.NETWORK, "VM Network", refs.NETWORK_FOLDER, summary=network, vm=_vms, host=hosts)


def _store_summary(estate: Estate) -> Any:
    return vim.Datastore.Summary(
        datastore=refs.STORE,
        name=estate.store.name,
        url="ds:///vmfs/volumes/simulated/",
        capacity=(estate.inventory.datastore_free_mib << 20) + 10 * _TIB,
        freeSpace=estate.store.free_mib << 20,
        accessible=True,
        multipleHostAccess=True,
        type="VMFS",
        maintenanceMode="normal",
    )


def _vms(context: Any, _: Any) -> list[Any]:
    return refs.of_all(context.estate.vms.values())


def _folder(ref: Any, name: str, children: Any, kind: str) -> InventoryObject:
    return _thing(ref, name, refs.DC, childEntity=children, childType=["Folder", kind])


def _thing(ref: Any, name: str, parent: Any, **values: Any) -> InventoryObject:
    entity = {"name": name, "parent": parent, "overallStatus": "green", "configStatus": "green", **values}
    table = PropertyTable()
    for path, value in entity.items():
        table(path)(value if callable(value) else _from_subject(path))
    return InventoryObject(ref, table, entity)


def _from_subject(path: str) -> Any:
    return lambda _, subject: subject[path]
