"""The inventory around hosts and VMs. It is fixed; only VMs come and go in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vgpuctl.sim.vcenter.inventory import drs_properties, ha_properties, refs
from vgpuctl.sim.vcenter.inventory.objects import InventoryObject, PropertyTable
from vgpuctl.sim.vcenter.physics.estate import Estate
from vgpuctl.sim.vcenter.physics.places import Cluster, Datacenter, Folder, Store
from vgpuctl.sim.vcenter.wire.vmomi import vim

_TIB = 1 << 40


def tree(estate: Estate) -> Iterator[InventoryObject]:
    datacenters = list(estate.places.datacenters.values())
    children = [refs.of(datacenter) for datacenter in datacenters]
    # vSphere: the root folder is named so. Paths of objects leave it out.
    yield _thing(refs.ROOT, "Datacenters", None, childEntity=children, childType=["Folder", "Datacenter"])
    for datacenter in datacenters:
        yield from _datacenter(datacenter)
        for cluster in datacenter.clusters.values():
            yield from _compute(estate, cluster)
        yield from _storage_and_network(estate, datacenter)


def _datacenter(datacenter: Datacenter) -> Iterator[InventoryObject]:
    this = refs.of(datacenter)
    hosts, stores, networks = (
        vim.Folder(moid) for moid in (datacenter.host_folder, datacenter.store_folder, datacenter.network_folder)
    )
    yield _thing(
        this,
        datacenter.name,
        refs.ROOT,
        vmFolder=refs.of(datacenter.vm_folder),
        hostFolder=hosts,
        datastoreFolder=stores,
        networkFolder=networks,
        datastore=refs.stores(datacenter),
        network=[refs.network(datacenter)],
        configuration=vim.Datacenter.ConfigInfo(),
    )
    yield from _vm_folders(datacenter.vm_folder, this)
    yield _folder(hosts, "host", this, refs.of_all(datacenter.clusters.values()), "ComputeResource")
    yield _folder(stores, "datastore", this, refs.stores(datacenter), "Datastore")
    yield _folder(networks, "network", this, [refs.network(datacenter)], "Network")


def _vm_folders(folder: Folder, parent: Any) -> Iterator[InventoryObject]:
    this = refs.of(folder)
    inner = refs.of_all(folder.folders.values())
    yield _folder(this, folder.name, parent, lambda: inner + refs.of_all(folder.vms.values()), "VirtualMachine")
    for each in folder.folders.values():
        yield from _vm_folders(each, this)


def _compute(estate: Estate, cluster: Cluster) -> Iterator[InventoryObject]:
    this, pool, browser = refs.of(cluster), refs.pool(cluster), refs.environment_browser(cluster)
    yield _thing(
        this,
        cluster.name,
        vim.Folder(cluster.datacenter.host_folder),
        host=refs.of_all(cluster.hosts),
        datastore=refs.stores(cluster.datacenter),
        network=[refs.network(cluster.datacenter)],
        resourcePool=pool,
        environmentBrowser=browser,
        configurationEx=lambda: drs_properties.configuration(estate, cluster),
        summary=lambda: _cluster_summary(estate, cluster),
    )
    yield InventoryObject(browser, PropertyTable(), cluster)
    yield _thing(
        pool,
        "Resources",
        this,
        owner=this,
        resourcePool=[],
        vm=lambda: refs.of_all(cluster.vms),
        config=_unlimited(pool),
        summary=vim.ResourcePool.Summary(name="Resources", config=_unlimited(pool), runtime=_pool_runtime()),
        runtime=_pool_runtime(),
    )


def _cluster_summary(estate: Estate, cluster: Cluster) -> Any:
    hosts = len(cluster.hosts)
    return vim.ClusterComputeResource.Summary(
        numHosts=hosts,
        numEffectiveHosts=hosts,
        overallStatus="green",
        admissionControlInfo=ha_properties.state(estate.inventory.ha, cluster),
    )


def _unlimited(pool: Any) -> Any:
    shares = vim.SharesInfo(shares=4000, level="normal")
    allocation = vim.ResourceAllocationInfo(reservation=0, expandableReservation=True, limit=-1, shares=shares)
    return vim.ResourceConfigSpec(entity=pool, cpuAllocation=allocation, memoryAllocation=allocation)


def _pool_runtime() -> Any:
    usage = vim.ResourcePool.ResourceUsage()
    return vim.ResourcePool.RuntimeInfo(memory=usage, cpu=usage, overallStatus="green")


def _storage_and_network(estate: Estate, datacenter: Datacenter) -> Iterator[InventoryObject]:
    for store in datacenter.stores.values():
        yield _store(estate, store, vim.Folder(datacenter.store_folder))
    this = refs.network(datacenter)
    network = vim.Network.Summary(network=this, name="VM Network", accessible=True)
    hosts = refs.of_all(host for cluster in datacenter.clusters.values() for host in cluster.hosts)
    yield _thing(
        this,
        "VM Network",
        vim.Folder(datacenter.network_folder),
        summary=network,
        vm=lambda: refs.of_all(datacenter.vms),
        host=hosts,
    )


def _store(estate: Estate, store: Store, folder: Any) -> InventoryObject:
    def vms() -> list[Any]:
        return refs.of_all(vm for vm in estate.vms.values() if store in vm.stores)

    return _thing(refs.of(store), store.name, folder, vm=vms, summary=lambda: _store_summary(store))


def _store_summary(store: Store) -> Any:
    return vim.Datastore.Summary(
        datastore=refs.of(store),
        name=store.name,
        url=f"ds:///vmfs/volumes/simulated-{store.moid}/",
        capacity=(store.capacity_mib << 20) + 10 * _TIB,
        freeSpace=store.free_mib << 20,
        accessible=True,
        multipleHostAccess=True,
        type="VMFS",
        maintenanceMode="normal",
    )


def _folder(ref: Any, name: str, parent: Any, children: Any, kind: str) -> InventoryObject:
    return _thing(ref, name, parent, childEntity=children, childType=["Folder", kind])


def _thing(ref: Any, name: str, parent: Any, **values: Any) -> InventoryObject:
    entity = {"name": name, "parent": parent, "overallStatus": "green", "configStatus": "green", **values}
    table = PropertyTable()
    for path, value in entity.items():
        table(path)(_changing(value) if callable(value) else _from_subject(path))
    return InventoryObject(ref, table, entity)


def _changing(value: Callable[[], Any]) -> Any:
    """Return a reader whose value is never cached: it depends on more than its own object."""

    def read(context: Any, _: Any) -> Any:
        context.center  # noqa: B018 - marks the context as used
        return value()

    return read


def _from_subject(path: str) -> Any:
    return lambda _, subject: subject[path]
