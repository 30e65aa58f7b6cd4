"""Maintenance mode: nothing runs on such a host, and nothing starts there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vgpuctl.sim.vcenter.physics import refusals
from vgpuctl.sim.vcenter.physics.records import Host, Operation, Task
from vgpuctl.sim.vcenter.physics.tasks import Work

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate


def set_mode(estate: Estate, host: Host, wanted: bool) -> None:
    if wanted and host.runs_vms:
        raise refusals.wrong_state()
    host.in_maintenance = wanted
    estate.changed(host)


def enter(estate: Estate, host: Host, timeout_s: float) -> Task:
    """Wait until nothing runs on the host; no VM is moved away. A timeout of 0 means none."""
    task = estate.work.start(
        Work(
            entity=host,
            operation=Operation.ENTER_MAINTENANCE,
            duration_s=estate.durations.reconfigure_s,
            begin=partial(_require, host, in_maintenance=False),
            finish=partial(set_mode, estate, host, True),
            # vSphere API: the task ends only when no VM runs on the host. Without DRS, people move or stop them.
            waits=lambda: host.runs_vms,
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


def _require(host: Host, *, in_maintenance: bool) -> None:
    if host.in_maintenance is not in_maintenance:
        raise refusals.wrong_state()


def _give_up(estate: Estate, task: Task) -> None:
    if not task.done:
        estate.work.fail(task, refusals.timed_out())
