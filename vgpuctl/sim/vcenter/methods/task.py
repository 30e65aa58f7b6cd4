"""The TaskManager: cancels tasks and lists the recent ones."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.objects import MANAGERS
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles

TASKS = MANAGERS["TaskManager"]


@handles("CancelTask")
def cancel_task(call: Call) -> None:
    call.center.estate.work.cancel(call.subject)


@TASKS("recentTask")
def _recent_task(context: Any, _: Any) -> list[Any]:
    # vSphere API: the tasks that completed in the past 10 minutes, run or are queued. A limit of 200 is not simulated.
    return refs.of_all(context.estate.tasks.values())
