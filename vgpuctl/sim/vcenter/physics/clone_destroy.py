"""Cloning and destroying VMs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from vgpuctl.sim.inventory import VmSpec
from vgpuctl.sim.vcenter.physics import power, refusals
from vgpuctl.sim.vcenter.physics.records import Changes, Host, Operation, Power, Task, Vm
from vgpuctl.sim.vcenter.physics.tasks import Work

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate


@dataclass(frozen=True, slots=True)
class CloneSpec:
    """What a clone should have. It copies everything else from its source."""

    name: str
    host: Host
    changes: Changes
    powered_on: bool


def clone(estate: Estate, source: Vm, clone_spec: CloneSpec) -> Task:
    """Start the task. It takes as long as a power-on; no source says how long a real one takes."""
    return estate.work.start(
        Work(
            entity=source,
            operation=Operation.CLONE,
            duration_s=estate.durations.power_on_s,
            begin=partial(_check, estate, source, clone_spec),
            finish=partial(_finish_clone, estate, source, clone_spec),
        )
    )


def destroy(estate: Estate, vm: Vm) -> Task:
    return estate.work.start(
        Work(
            entity=vm,
            operation=Operation.DESTROY,
            duration_s=estate.durations.reconfigure_s,
            begin=partial(_require_not_on, vm),
            finish=partial(_finish_destroy, estate, vm),
        )
    )


def _check(estate: Estate, source: Vm, clone_spec: CloneSpec) -> None:
    """A suspended VM cannot be cloned, because its memory cannot be copied (inferred)."""
    if source.power is Power.SUSPENDED:
        raise refusals.wrong_power(source, Power.OFF)
    if clone_spec.name in estate.vms:
        raise refusals.duplicate_name(estate.vms[clone_spec.name])


def _finish_clone(estate: Estate, source: Vm, clone_spec: CloneSpec) -> None:
    # Checked again: a VM of that name may have come while the task ran.
    _check(estate, source, clone_spec)
    new = estate.add(_spec(source, clone_spec))
    new.annotation = source.annotation
    new.extra_config = dict(source.extra_config)
    estate.apply(new, clone_spec.changes)
    estate.changed(new)
    if source.running_task:
        source.running_task.result = new
    if clone_spec.powered_on:
        estate.power_on(new)


def _spec(source: Vm, clone_spec: CloneSpec) -> VmSpec:
    return replace(
        source.spec,
        name=clone_spec.name,
        host=clone_spec.host.name,
        memory_mib=source.memory_mib,
        cpus=source.cpus,
        powered_on=False,
        suspended=False,
        vgpus=tuple(source.vgpus.values()),
        memory_locked=source.memory_locked,
        has_node=False,
    )


def _require_not_on(vm: Vm) -> None:
    if vm.power is Power.ON:
        raise refusals.wrong_power(vm, Power.OFF)


def _finish_destroy(estate: Estate, vm: Vm) -> None:
    _require_not_on(vm)
    power.finish_power_off(estate, vm)
    estate.remove(vm)
