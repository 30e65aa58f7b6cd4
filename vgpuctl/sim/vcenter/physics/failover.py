"""HA admission control: what a cluster keeps free for the failure of hosts, and which starts it refuses for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vgpuctl.sim.inventory import Ha
from vgpuctl.sim.vcenter.physics import refusals
from vgpuctl.sim.vcenter.physics.places import Cluster
from vgpuctl.sim.vcenter.physics.records import Host, Operation, Power, Vm

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate


def allowed(estate: Estate, vm: Vm, hosts: Sequence[Host]) -> Sequence[Host]:
    """Return the hosts on which the VM may start; refuse if none is left or too little would stay free."""
    ha = estate.inventory.ha
    if ha is None:
        return hosts
    # vSphere: a dedicated failover host starts no VM; it is kept for the failure of another host.
    others = [host for host in hosts if host.name not in ha.hosts]
    needed_mib = vm.needed_mib
    # vSphere API: `FailoverResourcesAdmissionControlPolicy` keeps a share of the cluster's resources free.
    # Memory counts by reservations and overheads. Processors are not simulated.
    if not others or (ha.memory_percent and free_percent(vm.host.cluster, needed_mib) < ha.memory_percent):
        raise refusals.no_failover()
    if ha.level and not _slots_suffice(ha, vm.host.cluster, needed_mib):
        raise refusals.no_failover()
    return others


def _usable_hosts(cluster: Cluster) -> list[Host]:
    # vSphere API: HA counts connected hosts that are not in maintenance mode.
    return [host for host in cluster.hosts if host.connected and not host.in_maintenance]


def free_percent(cluster: Cluster, needed_mib: int) -> float:
    """Return the share of memory that would stay unreserved, over all hosts that HA counts."""
    usable = _usable_hosts(cluster)
    total = sum(host.spec.memory_mib for host in usable)
    return 100 * (sum(host.unreserved_mib for host in usable) - needed_mib) / total if total else 0.0


def _slots_suffice(ha: Ha, cluster: Cluster, needed_mib: int) -> bool:
    """A slot is fixed, or as large as the largest reservation with its overhead. A larger VM takes several. CPUs are
    not counted here.
    """
    used = [vm.reserved_mib for vm in cluster.vms if _runs(vm)] + [needed_mib]
    # vSphere API: without a slot policy, the largest reservation of a powered-on VM is the slot.
    slot = ha.slot_mib or max(*used, 1)
    # vSphere API: a host's slots are rounded down, and the largest hosts are assumed to fail first.
    slots = sorted(host.spec.memory_mib // slot for host in _usable_hosts(cluster))
    return sum(max(1, -(-mib // slot)) for mib in used) <= sum(slots[: -ha.level])


def _runs(vm: Vm) -> bool:
    """A VM counts from the moment its power-on has reserved memory."""
    task = vm.running_task
    begun = task is not None and task.operation is Operation.POWER_ON and vm.reserved_mib > 0
    return vm.power is Power.ON or begun
