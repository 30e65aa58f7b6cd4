"""Hosts that vCenter loses, because they crash, stop answering or are disconnected; and how they come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vgpuctl.sim.vcenter.physics import graphics_books, power, refusals, restarts
from vgpuctl.sim.vcenter.physics.records import Connection, Host, Power

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate


def crash(estate: Estate, host: Host) -> None:
    """Stop all that ran. Suspended VMs keep their files on the datastore."""
    ran = [vm for vm in host.vms if vm.power is Power.ON]
    lose(estate, host, Connection.NOT_RESPONDING)
    for vm in ran:
        power.finish_power_off(estate, vm)
    restarts.plan(estate, ran)


def lose(estate: Estate, host: Host, how: Connection) -> None:
    """End the connection. The host goes on working; vCenter shows what it knew last."""
    if how is host.connection:
        raise refusals.wrong_state()
    if host.connected:
        for vm in host.vms:
            vm.last_known = vm.power
    host.connection = how
    # That vCenter's tasks end with this fault, and that the host undoes their work, is inferred.
    for task in (host.running_task, *(vm.running_task for vm in host.vms)):
        if task:
            estate.work.fail(task, refusals.lost_host())
    estate.changed(host, *host.vms)


def connect(estate: Estate, host: Host) -> None:
    """Connect the host again. One that crashed has booted, and vCenter learns what became of its VMs."""
    if host.connected:
        raise refusals.wrong_state()
    host.connection = Connection.CONNECTED
    for vm in host.vms:
        vm.last_known = None
    graphics_books.refresh(estate, host)
    estate.changed(*host.vms)
