"""Where hosts and VMs are: datacenters with their clusters, folders and datastores, fixed from the beginning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from vgpuctl.sim.inventory import HostSpec, Inventory
from vgpuctl.sim.vcenter.physics.task_progress import SharedThroughput

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.records import Host, Vm

#: The ids of the first object of each kind. vSphere API: an id is opaque to clients.
_FIRST_IDS = {
    "datacenter-": 2,
    "group-v": 3,
    "group-h": 4,
    "group-s": 5,
    "group-n": 6,
    "domain-c": 7,
    "resgroup-": 8,
    "datastore-": 9,
    "network-": 10,
    "envbrowser-": 11,
}


@dataclass(eq=False, slots=True)
class Store:
    """A datastore. It holds the files of suspended VMs, whose writers and readers share its throughput."""

    moid: str
    name: str
    capacity_mib: int
    free_mib: int
    traffic: SharedThroughput = field(default_factory=SharedThroughput)


@dataclass(eq=False, slots=True)
class Folder:
    """A folder of VMs. vSphere: a VM's name is unique in its folder only."""

    moid: str
    name: str
    folders: dict[str, Folder] = field(default_factory=dict)
    vms: dict[str, Vm] = field(default_factory=dict)

    def all(self) -> Iterator[Folder]:
        """Yield this folder and all folders below it."""
        yield self
        for folder in self.folders.values():
            yield from folder.all()


@dataclass(eq=False, slots=True)
class Cluster:
    """A cluster with its resource pool. DRS places VMs, and HA keeps resources free, within one cluster."""

    moid: str
    pool: str
    browser: str
    name: str
    datacenter: Datacenter
    hosts: list[Host] = field(default_factory=list)

    @property
    def vms(self) -> list[Vm]:
        return [vm for host in self.hosts for vm in host.vms]


@dataclass(eq=False, slots=True)
class Datacenter:
    """All its hosts see its datastores. vSphere: their names, and those of clusters, are unique in it only."""

    moid: str
    name: str
    vm_folder: Folder
    host_folder: str
    store_folder: str
    network_folder: str
    network: str
    clusters: dict[str, Cluster] = field(default_factory=dict)
    stores: dict[str, Store] = field(default_factory=dict)

    @property
    def vms(self) -> list[Vm]:
        return [vm for cluster in self.clusters.values() for vm in cluster.vms]


class Places:
    """Each method returns a place; one that is not there yet is made."""

    def __init__(self, inventory: Inventory) -> None:
        self.datacenters: dict[str, Datacenter] = {}
        self._inventory = inventory
        self._first_ids = dict(_FIRST_IDS)
        self._later_ids = count(len(_FIRST_IDS) + 2)

    @property
    def stores(self) -> list[Store]:
        return [store for datacenter in self.datacenters.values() for store in datacenter.stores.values()]

    @property
    def vm_folders(self) -> Iterator[Folder]:
        return (folder for datacenter in self.datacenters.values() for folder in datacenter.vm_folder.all())

    def cluster(self, host: HostSpec) -> Cluster:
        datacenter = self._datacenter(host.datacenter)
        name = host.cluster or self._inventory.cluster
        if name not in datacenter.clusters:
            datacenter.clusters[name] = Cluster(
                moid=self._id("domain-c"),
                pool=self._id("resgroup-"),
                browser=self._id("envbrowser-"),
                name=name,
                datacenter=datacenter,
            )
        self.store(datacenter, host.datastore)
        return datacenter.clusters[name]

    def store(self, datacenter: Datacenter, name: str) -> Store:
        if name not in datacenter.stores:
            room = dict(self._inventory.datastores)
            free_mib = room.get(f"{datacenter.name}/{name}", room.get(name, self._inventory.datastore_free_mib))
            datacenter.stores[name] = Store(self._id("datastore-"), name, free_mib, free_mib)
        return datacenter.stores[name]

    def folder(self, datacenter: Datacenter, path: str) -> Folder:
        """Return a folder below the datacenter's `vm` folder; the latter itself for an empty path."""
        folder = datacenter.vm_folder
        for name in filter(None, path.split("/")):
            if name not in folder.folders:
                folder.folders[name] = Folder(self._id("group-v"), name)
            folder = folder.folders[name]
        return folder

    def _datacenter(self, name: str) -> Datacenter:
        if name not in self.datacenters:
            self.datacenters[name] = Datacenter(
                moid=self._id("datacenter-"),
                name=name,
                vm_folder=Folder(self._id("group-v"), "vm"),
                host_folder=self._id("group-h"),
                store_folder=self._id("group-s"),
                network_folder=self._id("group-n"),
                network=self._id("network-"),
            )
        return self.datacenters[name]

    def _id(self, prefix: str) -> str:
        return f"{prefix}{self._first_ids.pop(prefix, None) or next(self._later_ids)}"
