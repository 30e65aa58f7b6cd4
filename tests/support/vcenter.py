"""Words for clients of the simulated vCenter: pyVmomi, unmodified, at the address of an estate."""

from __future__ import annotations

import ssl
from typing import Any

from pyVim.connect import SmartConnect
from pyVmomi import vim, vmodl
from pyVmomi.SoapAdapter import SoapStubAdapter

from vgpuctl.sim.logins import Logins
from vgpuctl.testing import Estate

PC = vmodl.query.PropertyCollector
COLLECTOR_ID = "propertyCollector"
#: With characters that XML must escape.
LOGINS = Logins(user="operator@vsphere.local", password="open sesame & <more>", readers_password="only looking")


def trust(estate: Estate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(estate.ca))


def connect(estate: Estate, user: str = "", password: str = "") -> Any:
    """A session of pyVmomi, for the user who may do everything unless another is named."""
    logins = estate.logins
    return SmartConnect(
        host="127.0.0.1",
        port=estate.vcenter_port,
        user=user or logins.user,
        pwd=password or logins.password,
        sslContext=trust(estate),
    )


def stub(estate: Estate) -> Any:
    """A way in without a session."""
    return SoapStubAdapter(
        host="127.0.0.1", port=estate.vcenter_port, sslContext=trust(estate), version="vim.version.version9"
    )


def content_of(client: Any) -> Any:
    return client.RetrieveContent()


def view_filter(content: Any, paths: dict[Any, list[str]], with_tasks: list[str] | None = None) -> Any:
    """A filter over one view of those types, and over the VMs' tasks where their paths are given."""
    view = content.viewManager.CreateContainerView(content.rootFolder, list(paths), True)
    tasks = PC.TraversalSpec(type=vim.VirtualMachine, path="recentTask") if with_tasks else None
    walk = PC.TraversalSpec(type=vim.view.ContainerView, path="view", selectSet=[tasks] if tasks else [])
    properties = [PC.PropertySpec(type=kind, pathSet=wanted) for kind, wanted in paths.items()]
    if with_tasks:
        properties.append(PC.PropertySpec(type=vim.Task, pathSet=with_tasks))
    return PC.FilterSpec(propSet=properties, objectSet=[PC.ObjectSpec(obj=view, skip=True, selectSet=[walk])])


def vm_named(client: Any, name: str) -> Any:
    return content_of(client).searchIndex.FindByInventoryPath(f"dc/vm/{name}")


def wait_for(task: Any) -> Any:
    """Until a task is done, by the protocol's own way of waiting."""
    collector = PC(COLLECTOR_ID, task._stub).CreatePropertyCollector()
    one = PC.PropertySpec(type=vim.Task, pathSet=["info.state"])
    collector.CreateFilter(PC.FilterSpec(propSet=[one], objectSet=[PC.ObjectSpec(obj=task)]), False)
    version = ""
    for _ in range(20):
        updates = collector.WaitForUpdatesEx(version, PC.WaitOptions(maxWaitSeconds=10))
        assert updates, "the task did not move"
        version = updates.version
        if updates.filterSet[0].objectSet[0].changeSet[0].val in ("success", "error"):
            break
    collector.Destroy()
    return task.info


def attach(vgpu: str) -> Any:
    """One reconfiguration that adds a vGPU and reserves all memory for it."""
    backing = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu=vgpu)
    device = vim.vm.device.VirtualPCIPassthrough(key=-1, backing=backing)
    change = vim.vm.device.VirtualDeviceSpec(operation="add", device=device)
    return vim.vm.ConfigSpec(deviceChange=[change], memoryReservationLockedToMax=True)


def add_vgpu(vm: Any, vgpu: str) -> Any:
    """How that reconfiguration ended."""
    return wait_for(vm.ReconfigVM_Task(attach(vgpu)))


def values(update: Any) -> dict[str, Any]:
    return {change.name: change.val for change in update.changeSet}
