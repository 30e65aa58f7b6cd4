"""Moving VMs to other hosts: running ones by vMotion, others by registering them there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vgpuctl.sim.vcenter.physics import admission, power, refusals
from vgpuctl.sim.vcenter.physics.records import Host, Operation, Power, Task, Vm
from vgpuctl.sim.vcenter.physics.tasks import Work

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate


def migrate(estate: Estate, vm: Vm, host: Host) -> Task:
    """Start the task. A move of a VM that is off or suspended is as short as a reconfiguration: its files stay."""
    running = vm.power is Power.ON
    return estate.work.start(
        Work(
            entity=vm,
            operation=Operation.MIGRATE,
            duration_s=estate.durations.migrate_s if running else estate.durations.reconfigure_s,
            begin=partial(_check, estate, vm, host),
            finish=partial(_finish, estate, vm, host),
        )
    )


def target_for(estate: Estate, vm: Vm) -> Host | None:
    """Return the first other host that DRS could move the VM to."""
    for host in vm.host.cluster.hosts:
        if host is not vm.host and is_movable(estate, vm, host):
            return host
    return None


def is_movable(estate: Estate, vm: Vm, host: Host) -> bool:
    try:
        _check(estate, vm, host)
    except refusals.Refusal:
        return False
    return vm.power is not Power.ON or admission.fits(vm, host)


def _check(estate: Estate, vm: Vm, host: Host) -> None:
    admission.require_ready(host)
    if host is vm.host:
        raise refusals.wrong_state()
    if vm.spec.must_run_on not in ("", host.name):
        raise refusals.bound_elsewhere(vm, host)
    # Moves between clusters are not simulated: DRS and HA make none.
    if host.cluster is not vm.host.cluster:
        raise refusals.not_migratable(vm.host)
    # vSphere: vMotion with a vGPU needs `vgpu.hotmigrate.enabled`, a setting of vCenter; SR-IOV forbids it.
    if vm.power is Power.ON and (vm.spec.sriov or (vm.vgpus and not estate.inventory.hot_migration)):
        raise refusals.not_migratable(vm.host)
    # vSphere: a suspended VM resumes on the same kind of card, with the same vGPU type.
    for index, vgpu in enumerate(vm.vgpus.values()):
        if not host.offers(vgpu):
            raise refusals.unknown_vgpu(index)


def _finish(estate: Estate, vm: Vm, host: Host) -> None:
    _check(estate, vm, host)
    before = vm.host
    if vm.power is Power.ON:
        admission.move_running(vm, host)
    else:
        admission.move(vm, host)
    power.placed(estate, vm, before)
    estate.changed(before, host)
    # The host may wait in EnterMaintenanceMode_Task for its last VM.
    estate.work.recheck(before)
