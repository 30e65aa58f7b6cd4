"""What we ask vCenter for: a little about all objects, much about a few. Each filter covers any number of objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

#: For VMs that matter; leaf paths only.
#: Measured: reading 1,000 VMs took pyVmomi's parser 0.14 s without their devices and 1.4 s with them.
#: In vcsim, `vm.runtime` and `vm.summary` as a whole cannot even be parsed.
VM_PATHS = [
    "runtime.powerState",
    "runtime.host",
    # vSphere: a power-on hangs until it is answered, and it may come up while a step waits.
    "runtime.question",
    "guest.guestState",
    "config.uuid",
    "config.hardware.device",
    "config.hardware.memoryMB",
    "config.memoryReservationLockedToMax",
    "config.managedBy",
]
#: Needed only to change devices, or to check them.
VM_MMIO_PATHS = ["config.firmware"]
#: Needed to change devices, and to stop VMs: settings of vGPUs, among which some forbid a suspend.
VM_SETTINGS_PATHS = ["config.extraConfig"]
#: Where a suspended VM's state is written, and how much space is free there.
#: vSphere: the file lies in `config.files.suspendDirectory` where that is set, else beside the .vmx.
VM_STORE_PATHS = ["config.files.suspendDirectory", "config.files.vmPathName"]
#: vSphere: a datastore's name is unique in its datacenter only, and a host sees the datastores of its own.
HOST_STORE_PATHS = ["datastore"]
STORE_PATHS = ["name", "summary.freeSpace"]
#: For VMs that matter only because they take memory on our hosts.
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
#: What HA and DRS may do in a cluster. We ask for the whole: the leaves we want belong to a subtype, and paths through
#: the declared type do not reach them.
CLUSTER_SETTINGS = "configurationEx"
TASK_PATHS = ["info.key", "info.state", "info.descriptionId", "info.entity", "info.error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationScope:
    """How much of vCenter a command must observe.

    `folders`, `clusters`, `uuids`: read them for all VMs, because workers are chosen by them. `mmio`, `neighbours`: for
    commands that change devices or start VMs. `drains`: for commands that stop VMs. `scales`: for timetables that scale
    workloads. `types`: read what hosts report about the vGPU types in the files.
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
    """Return a view of everything below `root`, made in one call, and a filter over it.

    The view follows VMs that come and go.
    """
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    kinds: dict[Any, list[str]] = {
        # Decision 0010: of all VMs only what choosing the workers takes.
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
        kinds[vim.HostSystem] = HOST_PATHS + HOST_STORE_PATHS
    if scope.uuids:
        kinds[vim.VirtualMachine].append("config.uuid")
    if scope.folders:
        kinds[vim.VirtualMachine].append("parent")
        kinds |= {vim.Folder: ["name", "parent"], vim.Datacenter: ["name", "parent"]}
    kinds[vim.HostSystem] = [path for path in kinds[vim.HostSystem] if in_version(vim.HostSystem, path, version)]
    view = view_manager.CreateContainerView(root, list(kinds), True)
    spec = vmodl.query.PropertyCollector
    through = spec.TraversalSpec(name="view", type=type(view), path="view", skip=False)
    everything = spec.FilterSpec(
        objectSet=[spec.ObjectSpec(obj=view, skip=True, selectSet=[through])], propSet=_properties(kinds)
    )
    return view, everything


def details(vms: Iterable[Any], scope: ObservationScope) -> Any:
    """Return a filter over the VMs that matter, with their recent tasks."""
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    spec = vmodl.query.PropertyCollector
    # vSphere: a VM's tasks come along with it (compared with vcsim), so no task is asked for by itself.
    tasks = spec.TraversalSpec(name="tasks", type=vim.VirtualMachine, path="recentTask", skip=False)
    paths = VM_PATHS + (VM_MMIO_PATHS if scope.mmio else []) + (VM_STORE_PATHS if scope.drains else [])
    paths += VM_SETTINGS_PATHS if scope.mmio or scope.drains else []
    return spec.FilterSpec(
        objectSet=[spec.ObjectSpec(obj=vm, selectSet=[tasks]) for vm in vms],
        propSet=_properties({vim.VirtualMachine: paths, vim.Task: TASK_PATHS}),
    )


def neighbours(vms: Iterable[Any]) -> Any:
    """Return a filter over other VMs that take memory on hosts where our VMs need some."""
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    spec = vmodl.query.PropertyCollector
    return spec.FilterSpec(
        objectSet=[spec.ObjectSpec(obj=vm) for vm in vms],
        propSet=_properties({vim.VirtualMachine: NEIGHBOUR_PATHS}),
    )


def in_version(kind: Any, path: str, version: str) -> bool:
    """True if this API version has the path. A newer path is refused, or answered with types this version lacks."""
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
