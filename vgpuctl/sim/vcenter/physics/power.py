"""What power operations do to a VM when their tasks begin and when they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vgpuctl.sim.vcenter.physics import admission, failover, refusals
from vgpuctl.sim.vcenter.physics.records import Host, Power, Question, Vm

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate

SRIOV_LABEL = "Network adapter 2"


def require(vm: Vm, wanted: Power, *allowed: Power) -> None:
    if vm.power not in allowed:
        raise refusals.wrong_power(vm, wanted)


def begin_on(estate: Estate, vm: Vm) -> None:
    """The card is chosen when the power-on begins, so that two of them cannot be promised the same room."""
    require(vm, Power.ON, Power.OFF, Power.SUSPENDED)
    before = vm.host
    take_what_it_needs(vm, failover.allowed(estate, vm, estate.hosts_for(vm)))
    if vm.asks and vm.running_task:
        vm.question = Question(vm.running_task.moid, vm.asks)
    if vm.vgpus or vm.host is not before:
        estate.changed(before, vm.host)
    estate.changed(vm)


def take_what_it_needs(vm: Vm, hosts: Sequence[Host]) -> None:
    if vm.vgpus and not vm.memory_locked:
        raise refusals.memory_not_reserved(vm)
    admission.admit(vm, hosts)


def undo_on(estate: Estate, vm: Vm) -> None:
    vm.question = None
    admission.give_back(vm)
    estate.changed(vm.host)


def end_on(estate: Estate, vm: Vm) -> None:
    resumed = vm.power is Power.SUSPENDED
    vm.power = Power.ON
    drop_stored(estate, vm)
    if resumed:
        estate.guests.thaw(vm.name)
    else:
        vm.booted = estate.clock.utc()
        estate.guests.boot(vm.name, len(vm.vgpus))


def begin_suspend(estate: Estate, vm: Vm) -> None:
    """The whole file is laid out at the beginning, so that two of them cannot be promised the same space."""
    require(vm, Power.ON, Power.ON)
    for device in unsuspendable(vm):
        raise refusals.not_suspendable(device)
    if vm.memory_mib > estate.store.free_mib:
        raise refusals.no_disk_space(vm, estate.store)
    vm.stored_mib = vm.memory_mib
    estate.store.free_mib -= vm.stored_mib
    estate.changed(estate.store)


def end_suspend(estate: Estate, vm: Vm) -> None:
    require(vm, Power.ON, Power.ON)  # its guest may have shut itself down meanwhile
    vm.power = Power.SUSPENDED
    _leave_host(estate, vm)
    estate.guests.freeze(vm.name)


def end_off(estate: Estate, vm: Vm) -> None:
    if vm.power is Power.OFF:
        return
    vm.power = Power.OFF
    vm.booted = None
    vm.shutting_down = False
    drop_stored(estate, vm)
    _leave_host(estate, vm)
    estate.guests.halt(vm.name)


def unsuspendable(vm: Vm) -> list[str]:
    """Devices that forbid suspending."""
    vgpus = [vgpu for vgpu in vm.vgpus.values() if vgpu in vm.host.spec.unsuspendable]
    return [SRIOV_LABEL, *vgpus] if vm.spec.sriov else vgpus


def drop_stored(estate: Estate, vm: Vm) -> None:
    if vm.stored_mib:
        estate.store.free_mib += vm.stored_mib
        vm.stored_mib = 0
        estate.changed(estate.store)


def _leave_host(estate: Estate, vm: Vm) -> None:
    seated = bool(vm.cards)
    admission.give_back(vm)
    if seated:
        estate.changed(vm.host)
    estate.work.look_again(vm.host)
