"""Maintenance mode: nothing runs on such a host, and nothing starts there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vgpuctl.sim.inventory import FULLY_AUTOMATED
from vgpuctl.sim.vcenter.physics import migration, refusals
from vgpuctl.sim.vcenter.physics.records import Host, Operation, Power, Software, Task, Vm
from vgpuctl.sim.vcenter.physics.tasks import Work

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate

#: vSphere 7: DRS runs every minute.
DRS_EVERY_S = 60.0


def set_mode(estate: Estate, host: Host, wanted: bool) -> None:
    if not host.connected:
        raise refusals.not_connected()
    if wanted and host.runs_vms:
        raise refusals.wrong_state()
    host.in_maintenance = wanted
    estate.changed(host)


def enter(estate: Estate, host: Host, timeout_s: float, *, evacuate: bool) -> Task:
    """Wait until nothing runs on the host; with `evacuate`, until no VM is on it. A timeout of 0 means none."""
    task = estate.work.start(
        Work(
            entity=host,
            operation=Operation.ENTER_MAINTENANCE,
            duration_s=estate.durations.reconfigure_s,
            begin=partial(_begin, estate, host, evacuate),
            finish=partial(set_mode, estate, host, True),
            # vSphere API: the task ends only when no VM runs on the host. What DRS does not move, people move or stop.
            waits=lambda: bool(host.vms) if evacuate else host.runs_vms,
        )
    )
    # vSphere API: with a timeout of zero or less there is none. After a timeout the task fails with Timedout.
    if timeout_s > 0:
        estate.clock.after(timeout_s, partial(_give_up, estate, task))
    return task


def leave(estate: Estate, host: Host) -> Task:
    return estate.work.start(
        Work(
            entity=host,
            operation=Operation.EXIT_MAINTENANCE,
            duration_s=estate.durations.reconfigure_s,
            begin=partial(_require, host, in_maintenance=True),
            finish=partial(set_mode, estate, host, False),
        )
    )


def patch(estate: Estate, host: Host, software: Software) -> None:
    """Install another version, with a reboot in the same moment. States that were suspended before stay as they are."""
    if not host.connected:
        raise refusals.not_connected()
    # vSphere: a host is patched in maintenance mode, when nothing runs on it.
    if host.runs_vms:
        raise refusals.wrong_state()
    host.software = software
    estate.changed(host)


def _begin(estate: Estate, host: Host, evacuate: bool) -> None:
    _require(host, in_maintenance=False)
    task = host.running_task
    assert task is not None
    if estate.inventory.drs:
        estate.clock.after(0, partial(_empty, estate, host, task, evacuate))


def _empty(estate: Estate, host: Host, task: Task, evacuate: bool) -> None:
    """Let DRS move what it may, and again every minute until the task ends."""
    if task.done:
        return
    for vm in tuple(host.vms):
        if not vm.running_task and _leaves(estate, vm, evacuate) and (target := migration.target_for(estate, vm)):
            migration.migrate(estate, vm, target)
    estate.clock.after(DRS_EVERY_S, partial(_empty, estate, host, task, evacuate))


def _leaves(estate: Estate, vm: Vm, evacuate: bool) -> bool:
    # vSphere API: `evacuatePoweredOffVms` registers VMs that do not run on other hosts, in a cluster with DRS.
    if vm.power is not Power.ON:
        return evacuate
    # vSphere API: only in fully automated mode does DRS move running VMs by itself.
    return (vm.spec.drs or estate.inventory.drs_behaviour) == FULLY_AUTOMATED


def _require(host: Host, *, in_maintenance: bool) -> None:
    if host.in_maintenance is not in_maintenance:
        raise refusals.wrong_state()


def _give_up(estate: Estate, task: Task) -> None:
    if not task.done:
        estate.work.fail(task, refusals.timed_out())
