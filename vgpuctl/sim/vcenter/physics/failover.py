"""HA admission control: what a cluster keeps for the failure of hosts, and which starts it refuses for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vgpuctl.sim.vcenter.physics import refusals
from vgpuctl.sim.vcenter.physics.records import Host, Operation, Power, Vm

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate


def allowed(estate: Estate, vm: Vm, hosts: Sequence[Host]) -> Sequence[Host]:
    """Those of these hosts on which it may start; refused where none is left, or where too little would stay free."""
    kept = estate.inventory.ha
    if kept is None:
        return hosts
    others = [host for host in hosts if host.name not in kept.hosts]
    asks = vm.reservation_mib
    if not others or (kept.memory_percent and free_percent(estate, asks) < kept.memory_percent):
        raise refusals.no_failover()
    if kept.level and not _slots_suffice(estate, asks):
        raise refusals.no_failover()
    return others


def _good(estate: Estate) -> list[Host]:
    return [host for host in estate.hosts.values() if not host.in_maintenance]


def free_percent(estate: Estate, asks: int) -> float:
    """What would be unreserved of the memory of all hosts on which HA counts."""
    good = _good(estate)
    total = sum(host.spec.memory_mib for host in good)
    return 100 * (sum(host.unreserved_mib for host in good) - asks) / total if total else 0.0


def _slots_suffice(estate: Estate, asks: int) -> bool:
    """A slot is as large as the largest reservation, or fixed; a larger VM takes several. Its cores take none here."""
    kept = estate.inventory.ha
    assert kept is not None
    taken = [vm.reserved_mib for vm in estate.vms.values() if _runs(vm)] + [asks]
    slot = kept.slot_mib or max(*taken, 1)
    slots = sorted(host.spec.memory_mib // slot for host in _good(estate))
    return sum(max(1, -(-mib // slot)) for mib in taken) <= sum(slots[: -kept.level])


def _runs(vm: Vm) -> bool:
    """What is about to run counts; what only asks to does not yet."""
    task = vm.running_task
    begun = task is not None and task.operation is Operation.POWER_ON and vm.reserved_mib > 0
    return vm.power is Power.ON or begun
