"""Destroying VMs."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim


@handles("Destroy_Task")
def destroy(call: Call) -> Any:
    """Only VMs can be destroyed; the rest of the inventory is fixed."""
    if not isinstance(call.target.ref, vim.VirtualMachine):
        raise faults.not_supported("Destroy_Task")
    return refs.of(call.center.estate.destroy(call.subject))
