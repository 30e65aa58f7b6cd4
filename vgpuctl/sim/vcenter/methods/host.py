"""The methods of a host."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles


@handles("EnterMaintenanceMode_Task")
def enter_maintenance_mode(call: Call, timeout: int, evacuate: bool | None, spec: Any) -> Any:
    # vSphere API: the specification is for hosts of vSAN.
    if spec is not None:
        raise faults.not_supported("a maintenance specification")
    return refs.of(call.center.estate.enter_maintenance(call.subject, timeout, evacuate=bool(evacuate)))


@handles("ExitMaintenanceMode_Task")
def exit_maintenance_mode(call: Call, timeout: int) -> Any:
    """Its timeout is ignored: it never takes that long here."""
    return refs.of(call.center.estate.leave_maintenance(call.subject))
