"""vSphere HA starts elsewhere what ran on a host that crashed, if there is room, and never what slept there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from vgpuctl.sim.vcenter.physics import power, refusals
from vgpuctl.sim.vcenter.physics.records import Power, Vm

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate

#: vSphere HA: `das.maxvmrestartcount` is 5. The later attempts come 2, 6, 14 and 30 minutes after the first.
PAUSES_S = (120.0, 240.0, 480.0, 960.0)


def plan(estate: Estate, ran: Sequence[Vm]) -> None:
    if estate.inventory.ha and ran:
        estate.clock.after(estate.durations.failover_s, partial(_restart_all, estate, ran, PAUSES_S))


def _restart_all(estate: Estate, vms: Sequence[Vm], pauses_s: Sequence[float]) -> None:
    left = [vm for vm in vms if not _restart(estate, vm)]
    if left and pauses_s:
        estate.clock.after(pauses_s[0], partial(_restart_all, estate, left, pauses_s[1:]))


def _restart(estate: Estate, vm: Vm) -> bool:
    """Return False if no host has room. A VM that people have started, moved on or removed is left to them."""
    if vm.power is not Power.OFF or vm.running_task or estate.vms.get(vm.guest) is not vm:
        return True
    before = vm.host
    hosts = [host for host in before.cluster.hosts if vm.spec.must_run_on in ("", host.name)]
    # vSphere HA: a restart may take what admission control keeps free, because it is kept for this.
    try:
        power.reserve_and_place(vm, hosts)
    except refusals.Refusal:
        return False
    vm.last_known = None
    # vSphere HA restarts without a task of vCenter. That the VM is on at once is a simplification: its guest boots.
    power.finish_power_on(estate, vm)
    power.placed(estate, vm, before)
    return True
