"""References to hosts, VMs, tasks and places, and to the managers, whose ids never change."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, TypeAlias

from vgpuctl.sim.vcenter.physics.places import Cluster, Datacenter, Folder, Store
from vgpuctl.sim.vcenter.physics.records import Host, Record, Task, Vm
from vgpuctl.sim.vcenter.wire.vmomi import vim, vmodl

Place: TypeAlias = Folder | Cluster | Datacenter

ROOT = vim.Folder("group-d1")

SERVICE = vim.ServiceInstance("ServiceInstance")
COLLECTOR = vmodl.query.PropertyCollector("propertyCollector")
SESSIONS = vim.SessionManager("SessionManager")
VIEWS = vim.view.ViewManager("ViewManager")
SEARCH = vim.SearchIndex("SearchIndex")
TASKS = vim.TaskManager("TaskManager")

_KINDS: dict[type, Any] = {
    Host: vim.HostSystem,
    Task: vim.Task,
    Store: vim.Datastore,
    Folder: vim.Folder,
    Cluster: vim.ClusterComputeResource,
    Datacenter: vim.Datacenter,
}


def of(subject: Record | Place) -> Any:
    return vm(subject.moid) if isinstance(subject, Vm) else _KINDS[type(subject)](subject.moid)


@cache
def vm(moid: str) -> Any:
    """Cached: a folder with ten thousand VMs is read often."""
    return vim.VirtualMachine(moid)


def of_all(subjects: Iterable[Record | Place]) -> list[Any]:
    return [of(subject) for subject in subjects]


def graphics_manager(host: Host) -> Any:
    # vSphere API: each host has its own GraphicsManager, named in its configManager.
    return vim.host.GraphicsManager(f"graphicsManager-{host.moid}")


def image_manager(host: Host) -> Any:
    return vim.host.ImageConfigManager(f"image-{host.moid}")


def pool(cluster: Cluster) -> Any:
    return vim.ResourcePool(cluster.pool)


def environment_browser(cluster: Cluster) -> Any:
    return vim.EnvironmentBrowser(cluster.browser)


def network(datacenter: Datacenter) -> Any:
    return vim.Network(datacenter.network)


def stores(datacenter: Datacenter) -> list[Any]:
    return of_all(datacenter.stores.values())


def holders_of(subject: Vm) -> Iterable[str]:
    """Return the ids of the objects whose lists of VMs change when this VM comes or goes."""
    cluster = subject.host.cluster
    stores = (store.moid for store in subject.stores)
    return (subject.host.moid, subject.folder.moid, *stores, cluster.pool, cluster.datacenter.network)
