"""The methods of a host."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles


@handles("EnterMaintenanceMode_Task")
def enter_maintenance_mode(call: Call, timeout: int, evacuate: bool | None, spec: Any) -> Any:
    # vSphere API: `evacuatePoweredOffVms` moves VMs that are off to other hosts, which is not simulated.
    if evacuate or spec is not None:
        raise faults.not_supported("to move VMs away from a host that enters maintenance mode")
    return refs.of(call.center.estate.enter_maintenance(call.subject, timeout))


@handles("ExitMaintenanceMode_Task")
def exit_maintenance_mode(call: Call, timeout: int) -> Any:
    """Its timeout is ignored: it never takes that long here."""
    return refs.of(call.center.estate.leave_maintenance(call.subject))
