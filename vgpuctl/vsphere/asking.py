"""What vCenter is asked for: little of all, much of few. Each is one filter, however many objects it covers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

#: Of VMs that matter; leaf paths only.
VM_PATHS = [
    "runtime.powerState",
    "runtime.host",
    "runtime.question",
    "guest.guestState",
    "config.uuid",
    "config.hardware.device",
    "config.hardware.memoryMB",
    "config.memoryReservationLockedToMax",
    "config.managedBy",
]
#: What only a change of devices, or a check of them, needs to know.
VM_MMIO_PATHS = ["config.firmware", "config.extraConfig"]
#: Where a suspend writes, and how much is free there.
VM_STORE_PATHS = ["config.files.vmPathName"]
STORE_PATHS = ["name", "summary.freeSpace"]
#: Of VMs that matter only by the memory that they take on our hosts.
NEIGHBOUR_PATHS = ["runtime.powerState", "summary.config.memoryReservation"]
HOST_PATHS = [
    "name",
    "parent",
    "hardware.memorySize",
    "runtime.inMaintenanceMode",
    "runtime.connectionState",
    "config.graphicsInfo",
    "config.graphicsConfig",
    "config.sharedPassthruGpuTypes",
    "config.sharedGpuCapabilities",
]
#: What HA and DRS may do in a cluster. Whole, for the leaves that we want belong to a subtype of it, and a path through
#: them is none of the declared type.
CLUSTER_SETTINGS = "configurationEx"
TASK_PATHS = ["info.key", "info.state", "info.descriptionId", "info.entity", "info.error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationScope:
    """How much must be known. `folders`, `clusters`, `uuids`: of all VMs, because workers are chosen by them; `mmio`,
    `neighbours`: by commands that change devices or start VMs; `drains`: by those that stop them.

    `scales`: by timetables that scale workloads. `types`: what a host says of types that files name.
    """

    folders: bool = False
    clusters: bool = False
    uuids: bool = False
    mmio: bool = False
    neighbours: bool = False
    drains: bool = False
    scales: bool = False
    types: bool = False


def outlines(root: Any, view_manager: Any, scope: ObservationScope, version: str) -> tuple[Any, Any]:
    """A view of everything below `root`, and a filter over it that changes with it: VMs come and go. One call makes the
    view."""
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    kinds: dict[Any, list[str]] = {
        vim.VirtualMachine: ["name"],
        vim.HostSystem: HOST_PATHS,
        vim.ComputeResource: ["name"],
    }
    if scope.clusters or scope.neighbours:
        kinds[vim.VirtualMachine].append("runtime.host")
    if scope.neighbours:
        kinds[vim.ComputeResource] = ["name", CLUSTER_SETTINGS]
    if scope.drains:
        kinds[vim.Datastore] = STORE_PATHS
    if scope.uuids:
        kinds[vim.VirtualMachine].append("config.uuid")
    if scope.folders:
        kinds[vim.VirtualMachine].append("parent")
        kinds |= {vim.Folder: ["name", "parent"], vim.Datacenter: ["name", "parent"]}
    kinds[vim.HostSystem] = [path for path in HOST_PATHS if in_version(vim.HostSystem, path, version)]
    view = view_manager.CreateContainerView(root, list(kinds), True)
    spec = vmodl.query.PropertyCollector
    through = spec.TraversalSpec(name="view", type=type(view), path="view", skip=False)
    everything = spec.FilterSpec(
        objectSet=[spec.ObjectSpec(obj=view, skip=True, selectSet=[through])], propSet=_properties(kinds)
    )
    return view, everything


def details(vms: Iterable[Any], scope: ObservationScope) -> Any:
    """A filter over the VMs that matter; their recent tasks come along."""
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    spec = vmodl.query.PropertyCollector
    tasks = spec.TraversalSpec(name="tasks", type=vim.VirtualMachine, path="recentTask", skip=False)
    paths = VM_PATHS + (VM_MMIO_PATHS if scope.mmio else []) + (VM_STORE_PATHS if scope.drains else [])
    return spec.FilterSpec(
        objectSet=[spec.ObjectSpec(obj=vm, selectSet=[tasks]) for vm in vms],
        propSet=_properties({vim.VirtualMachine: paths, vim.Task: TASK_PATHS}),
    )


def neighbours(vms: Iterable[Any]) -> Any:
    """A filter over VMs of others that take memory where ours want some."""
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    spec = vmodl.query.PropertyCollector
    return spec.FilterSpec(
        objectSet=[spec.ObjectSpec(obj=vm) for vm in vms],
        propSet=_properties({vim.VirtualMachine: NEIGHBOUR_PATHS}),
    )


def in_version(kind: Any, path: str, version: str) -> bool:
    """Does this version of the API have it? To ask for what is newer is refused, or answered in words it cannot say."""
    from pyVmomi.VmomiSupport import IsChildVersion  # type: ignore[attr-defined]  # noqa: PLC0415

    for part in path.split("."):
        known = kind._GetPropertyInfo(part)
        if not IsChildVersion(version, known.version):
            return False
        kind = known.type
    return True


def _properties(kinds: dict[Any, list[str]]) -> list[Any]:
    from pyVmomi import vmodl  # noqa: PLC0415

    return [vmodl.query.PropertyCollector.PropertySpec(type=kind, pathSet=paths) for kind, paths in kinds.items()]
