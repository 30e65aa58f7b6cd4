"""What power operations do to a VM when their tasks begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vgpuctl.sim.vcenter.physics import admission, failover, graphics_books, refusals
from vgpuctl.sim.vcenter.physics.records import Host, Power, Question, Vm

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate

SRIOV_LABEL = "Network adapter 2"
#: NVIDIA: plugin parameters of a vGPU, in its VM's `extraConfig`.
_TRACING = ("enable_uvm", "enable_debugging", "enable_profiling")


def require(vm: Vm, wanted: Power, *allowed: Power) -> None:
    if vm.power not in allowed:
        raise refusals.wrong_power(vm, wanted)


def begin_power_on(estate: Estate, vm: Vm) -> None:
    """Choose the card at the beginning, so that no two power-ons get the same room."""
    require(vm, Power.ON, Power.OFF, Power.SUSPENDED)
    before = vm.host
    # HA's admission control comes before memory and cards (inferred).
    reserve_and_place(vm, failover.allowed(estate, vm, estate.hosts_for(vm)))
    if vm.power_on_question and vm.running_task:
        vm.question = Question(vm.running_task.moid, vm.power_on_question)
    placed(estate, vm, before)


def placed(estate: Estate, vm: Vm, before: Host) -> None:
    """Report that a VM has its places, perhaps on another host than before."""
    if vm.vgpus or vm.host is not before:
        graphics_books.seats_changed(estate, before, vm.host)
    estate.changed(vm)


def reserve_and_place(vm: Vm, hosts: Sequence[Host]) -> None:
    # vSphere: a VM with a vGPU needs all its memory reserved (`memoryReservationLockedToMax`).
    if vm.vgpus and not vm.memory_locked:
        raise refusals.memory_not_reserved(vm)
    admission.admit(vm, hosts)


def undo_power_on(estate: Estate, vm: Vm) -> None:
    vm.question = None
    admission.release_resources(vm)
    graphics_books.seats_changed(estate, vm.host)


def finish_power_on(estate: Estate, vm: Vm) -> None:
    resumed = vm.power is Power.SUSPENDED
    vm.power = Power.ON
    delete_suspend_file(estate, vm)
    # vSphere API: a resume leaves `runtime.bootTime` as it is. vcsim 0.56 forgets it at a suspend (measured).
    if resumed:
        estate.guests.thaw(vm.guest)
    else:
        vm.booted = estate.clock.utc()
        estate.guests.boot(vm.guest, len(vm.vgpus))
    # NVIDIA: licences are leased at boot. That a guest that goes on leases again is inferred.
    estate.licences.lease(vm)


def begin_suspend(estate: Estate, vm: Vm) -> None:
    """Reserve the space of the whole file at the beginning, so that no two suspends get the same space."""
    require(vm, Power.ON, Power.ON)
    # vSphere: DirectPath I/O and SR-IOV devices forbid suspending.
    for device in unsuspendable(vm):
        raise refusals.not_suspendable(device)
    _write_suspend_file(estate, vm)


def finish_suspend(estate: Estate, vm: Vm) -> None:
    require(vm, Power.ON, Power.ON)  # its guest may have shut down meanwhile
    # That a suspended VM gives up its frame buffer is inferred: vSphere 9 counts powered-on VMs only against a card.
    vm.power = Power.SUSPENDED
    vm.suspended_under = vm.host.software
    estate.licences.keep(vm)
    _release_host(estate, vm)
    estate.guests.freeze(vm.guest)


def finish_power_off(estate: Estate, vm: Vm) -> None:
    if vm.power is Power.OFF:
        return
    vm.power = Power.OFF
    # vSphere API: a power-off clears `runtime.bootTime`.
    vm.booted = None
    vm.shutting_down = False
    estate.licences.keep(vm)
    delete_suspend_file(estate, vm)
    _release_host(estate, vm)
    estate.guests.halt(vm.guest)


def begin_asleep(estate: Estate, vm: Vm) -> None:
    """Let the world begin with this VM suspended. Its host may have been patched since."""
    vm.power = Power.SUSPENDED
    vm.suspended_under = vm.host.software._replace(build=vm.spec.suspended_under or vm.host.software.build)
    _write_suspend_file(estate, vm)


def unsuspendable(vm: Vm) -> list[str]:
    """Return the devices that forbid suspending."""
    # vSphere API: `SharedGpuCapabilities.suspendSupported`, per host and vGPU type.
    vgpus = [vgpu for vgpu in vm.vgpus.values() if vgpu in vm.host.spec.unsuspendable]
    sriov = [SRIOV_LABEL] if vm.spec.sriov else []
    return [*sriov, *vgpus, *_traced_vgpus(vm)]


def _traced_vgpus(vm: Vm) -> list[str]:
    """Return the vGPUs that have unified memory, debuggers or profilers switched on."""
    # NVIDIA: with any of them there is no migration, which includes suspend and resume.
    settings = {key.lower(): value.lower() for key, value in vm.extra_config.items()}
    return [
        f"PCI device {number}"
        for number in range(len(vm.vgpus))
        if any(settings.get(f"pcipassthru{number}.cfg.{name}") in ("1", "true") for name in _TRACING)
    ]


def _write_suspend_file(estate: Estate, vm: Vm) -> None:
    # vSphere: a suspend needs as much free space as the VM has memory. The frame buffer is not added to the file.
    if vm.memory_mib > vm.suspend_store.free_mib:
        raise refusals.no_disk_space(vm, vm.suspend_store)
    vm.suspend_file_mib = vm.memory_mib
    vm.suspend_store.free_mib -= vm.suspend_file_mib
    estate.changed(vm.suspend_store)


def delete_suspend_file(estate: Estate, vm: Vm) -> None:
    if vm.suspend_file_mib:
        vm.suspend_store.free_mib += vm.suspend_file_mib
        vm.suspend_file_mib = 0
        estate.changed(vm.suspend_store)


def _release_host(estate: Estate, vm: Vm) -> None:
    seated = bool(vm.cards)
    admission.release_resources(vm)
    if seated:
        graphics_books.seats_changed(estate, vm.host)
    # The host may wait in EnterMaintenanceMode_Task for its last VM.
    estate.work.recheck(vm.host)
