"""References to hosts, VMs and tasks, and to the inventory tree around them, whose ids never change."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from vgpuctl.sim.vcenter.physics.estate import DATACENTER, STORE_MOID
from vgpuctl.sim.vcenter.physics.records import Host, Record, Store, Vm
from vgpuctl.sim.vcenter.wire.vmomi import vim, vmodl

ROOT = vim.Folder("group-d1")
DC = vim.Datacenter(DATACENTER[0])
VM_FOLDER = vim.Folder("group-v3")
HOST_FOLDER = vim.Folder("group-h4")
STORE_FOLDER = vim.Folder("group-s5")
NETWORK_FOLDER = vim.Folder("group-n6")
CLUSTER = vim.ClusterComputeResource("domain-c7")
POOL = vim.ResourcePool("resgroup-8")
STORE = vim.Datastore(STORE_MOID)
NETWORK = vim.Network("network-10")
ENVIRONMENT_BROWSER = vim.EnvironmentBrowser("envbrowser-11")

SERVICE = vim.ServiceInstance("ServiceInstance")
COLLECTOR = vmodl.query.PropertyCollector("propertyCollector")
SESSIONS = vim.SessionManager("SessionManager")
VIEWS = vim.view.ViewManager("ViewManager")
SEARCH = vim.SearchIndex("SearchIndex")
TASKS = vim.TaskManager("TaskManager")

HOLDERS_OF_VMS = (VM_FOLDER, POOL, STORE, NETWORK)
"""The objects whose lists of VMs change when one is created or destroyed, beside its host."""


def of(subject: Record) -> Any:
    if isinstance(subject, Vm):
        return vm(subject.moid)
    if isinstance(subject, Host):
        return vim.HostSystem(subject.moid)
    if isinstance(subject, Store):
        return STORE
    return vim.Task(subject.moid)


@cache
def vm(moid: str) -> Any:
    """Cached: a folder with ten thousand VMs is read often."""
    return vim.VirtualMachine(moid)


def of_all(subjects: Iterable[Record]) -> list[Any]:
    return [of(subject) for subject in subjects]


def graphics_manager(host: Host) -> Any:
    # vSphere API: each host has its own GraphicsManager, named in its configManager.
    return vim.host.GraphicsManager(f"graphicsManager-{host.moid}")
