"""What can be done to a task."""

from __future__ import annotations

from vgpuctl.sim.vcenter.dispatch import Call, answers


@answers("CancelTask")
def cancel_task(call: Call) -> None:
    call.center.estate.work.cancel(call.subject)
