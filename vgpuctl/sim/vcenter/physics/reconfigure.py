"""Reconfiguring a VM: what is refused, and what changes."""

from __future__ import annotations

from vgpuctl.sim.vcenter.physics import admission, power, refusals
from vgpuctl.sim.vcenter.physics.records import Changes, Power, Vm

MAX_VGPUS = 16
"""Per VM, since vSphere 8.0 U2."""


def check(vm: Vm, changes: Changes) -> None:
    # vSphere API: with `changeVersion`, changes apply only to the configuration that the client has seen.
    # vcsim 0.56 does not look at it (measured).
    if changes.expected_revision not in (None, vm.revision):
        raise refusals.changed_meanwhile()
    # vSphere: devices may be changed only in `poweredOff`; suspended is not off.
    # vcsim 0.56 changes them in any state (measured).
    if changes.needs_off:
        power.require(vm, Power.OFF, Power.OFF)
    # vSphere API: DeviceNotFound means that the client passed a wrong key. vcsim 0.56 ignores such keys (measured).
    for index, key in changes.touched_keys():
        if key not in vm.vgpus:
            raise refusals.no_such_device(index)
    for index, vgpu in changes.wanted_vgpus():
        if not vm.host.offers(vgpu):
            raise refusals.unknown_vgpu(index)
    if len(vm.vgpus) - len(changes.removed) + len(changes.added) > MAX_VGPUS:
        raise refusals.too_many_vgpus(MAX_VGPUS)


def apply(vm: Vm, changes: Changes) -> None:
    if changes.memory_locked is not None:
        _lock_memory(vm, changes.memory_locked)
    # vSphere: to replace a vGPU is remove and add in one ReconfigVM_Task.
    for _, key in changes.removed:
        del vm.vgpus[key]
    for _, key, vgpu in changes.replaced:
        vm.vgpus[key] = vgpu
    for _, vgpu in changes.added:
        vm.vgpus[vm.next_device_key()] = vgpu
    # vSphere API: a key with an empty value is removed; others are added or overwritten. vcsim does so, too (measured).
    settings = vm.extra_config | dict(changes.extra_config)
    vm.extra_config = {key: value for key, value in settings.items() if value}
    for name in ("memory_mib", "cpus", "annotation"):
        if getattr(changes, name) is not None:
            setattr(vm, name, getattr(changes, name))
    # vSphere API: each change of the configuration changes `config.changeVersion`.
    vm.revision += 1


def _lock_memory(vm: Vm, locked: bool) -> None:
    """A running VM takes its reservation from the host at once, and is refused if the host has too little."""
    before = vm.memory_locked, vm.reserved_mib
    vm.memory_locked = locked
    if vm.power is Power.ON:
        vm.reserved_mib = 0
        # vSphere API: the lock may be set only if all of the VM's memory can be reserved now.
        try:
            admission.reserve(vm, vm.host)
        except refusals.Refusal:
            vm.memory_locked, vm.reserved_mib = before
            raise
