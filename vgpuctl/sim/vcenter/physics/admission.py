"""What a VM takes from a host when it starts and returns when it stops: memory, and places on cards."""

from __future__ import annotations

from collections.abc import Sequence

from vgpuctl.sim.vcenter.physics import refusals
from vgpuctl.sim.vcenter.physics.cards import release, seat
from vgpuctl.sim.vcenter.physics.records import Host, Power, Vm


def admit(vm: Vm, hosts: Sequence[Host]) -> None:
    """Start the VM on the first of these hosts that has room for all of it. Which host DRS prefers is inferred."""
    refused: list[tuple[Host, refusals.Refusal]] = []
    for host in hosts:
        try:
            _reserve_all(vm, host)
        except refusals.Refusal as refusal:
            refused.append((host, refusal))
        else:
            move(vm, host)
            return
    # vSphere API: NoCompatibleHost says that DRS found no host. That a VM bound to one host meets this host's own
    # fault instead is inferred.
    raise refused[0][1] if len(refused) == 1 else refusals.no_compatible_host(refused)


def reserve(vm: Vm, host: Host) -> None:
    """Reserve the VM's memory and its overhead. A VM without a reservation takes the overhead alone."""
    # vSphere: a power-on or resume needs the VM's whole reserved memory free on the host.
    if vm.needed_mib > host.unreserved_mib:
        raise refusals.no_memory(host, vm)
    vm.reserved_mib = vm.needed_mib


def release_resources(vm: Vm) -> None:
    vm.reserved_mib = 0
    release(vm.moid, vm.host.cards)


def require_ready(host: Host) -> None:
    """Refuse a host on which nothing may start now."""
    if not host.connected:
        raise refusals.not_connected()
    # vSphere API: nothing is powered on while a host enters maintenance mode, or is in it. A resume is a power-on, too.
    if host.in_maintenance or host.running_task:
        raise refusals.wrong_state()


def fits(vm: Vm, host: Host) -> bool:
    """Return True if the running VM could move here now."""
    try:
        _require_room(vm, host)
    except refusals.Refusal:
        return False
    release(vm.moid, host.cards)
    return True


def move_running(vm: Vm, host: Host) -> None:
    """Take room on the new host, then return what the VM had on its own."""
    _require_room(vm, host)
    release(vm.moid, vm.host.cards)
    move(vm, host)


def _require_room(vm: Vm, host: Host) -> None:
    """Take the VM's places on the cards, or refuse."""
    require_ready(host)
    if vm.needed_mib > host.unreserved_mib:
        raise refusals.no_memory(host, vm)
    if not seat(vm.moid, vm.vgpus.values(), host.cards, host.policy):
        raise refusals.no_graphics()


def _reserve_all(vm: Vm, host: Host) -> None:
    """Check memory before the cards (inferred): admission control comes before the host's own devices."""
    require_ready(host)
    # vSphere: a suspended state may not resume after an upgrade. NVIDIA: before the vGPU Manager is updated, all VMs
    # must be powered off, and suspended is not off. That a VM without a vGPU resumes under any build is inferred.
    if vm.power is Power.SUSPENDED and vm.vgpus and vm.suspended_under != host.software:
        raise refusals.stale_state(vm, host)
    reserve(vm, host)
    if not seat(vm.moid, vm.vgpus.values(), host.cards, host.policy):
        vm.reserved_mib = 0
        raise refusals.no_graphics()


def move(vm: Vm, host: Host) -> None:
    # vSphere: under DRS a power-on, a resume included, may place the VM on another host (PowerOnVM_Task).
    if vm.host is not host:
        vm.host.vms.remove(vm)
        host.vms.append(vm)
        vm.host = host
