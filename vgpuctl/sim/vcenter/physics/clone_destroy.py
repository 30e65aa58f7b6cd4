"""VMs come and go: cloning and destroying."""

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
class Wanted:
    """What a clone shall be; everything else it has from its source."""

    name: str
    host: Host
    changes: Changes
    powered_on: bool


def clone(estate: Estate, source: Vm, wanted: Wanted) -> Task:
    """No source says how long it takes: as long as a power-on, here."""
    return estate.work.start(
        Work(
            entity=source,
            operation=Operation.CLONE,
            duration_s=estate.durations.power_on_s,
            begin=partial(_check, estate, source, wanted),
            finish=partial(_come, estate, source, wanted),
        )
    )


def destroy(estate: Estate, vm: Vm) -> Task:
    return estate.work.start(
        Work(
            entity=vm,
            operation=Operation.DESTROY,
            duration_s=estate.durations.reconfigure_s,
            begin=partial(_require_no_power, vm),
            finish=partial(_go, estate, vm),
        )
    )


def _check(estate: Estate, source: Vm, wanted: Wanted) -> None:
    """Inferred: the memory of a suspended VM cannot be copied."""
    if source.power is Power.SUSPENDED:
        raise refusals.wrong_power(source, Power.OFF)
    if wanted.name in estate.vms:
        raise refusals.duplicate_name(estate.vms[wanted.name])


def _come(estate: Estate, source: Vm, wanted: Wanted) -> None:
    _check(estate, source, wanted)
    new = estate.add(_spec(source, wanted))
    new.annotation = source.annotation
    new.extra_config = dict(source.extra_config)
    estate.apply(new, wanted.changes)
    estate.changed(new)
    if source.running_task:
        source.running_task.result = new
    if wanted.powered_on:
        estate.power_on(new)


def _spec(source: Vm, wanted: Wanted) -> VmSpec:
    return replace(
        source.spec,
        name=wanted.name,
        host=wanted.host.name,
        memory_mib=source.memory_mib,
        cpus=source.cpus,
        powered_on=False,
        vgpus=tuple(source.vgpus.values()),
        memory_locked=source.memory_locked,
        has_node=False,
    )


def _require_no_power(vm: Vm) -> None:
    if vm.power is Power.ON:
        raise refusals.wrong_power(vm, Power.OFF)


def _go(estate: Estate, vm: Vm) -> None:
    _require_no_power(vm)
    power.end_off(estate, vm)
    estate.remove(vm)
