"""Which pods hold a switch back, by the timetable's `hold_while`."""

from __future__ import annotations

from collections.abc import Iterable

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.pods import Pod
from vgpuctl.model.timetable import Timetable


def holding(fleet: Fleet, timetable: Timetable, workers: Iterable[str]) -> tuple[Pod, ...]:
    """Return the pods on these workers that hold the switch, worker by worker.

    A worker that is asleep or unknown has none.
    """
    seen = (fleet.workers.get(name) for name in workers)
    nodes = (worker.node for worker in seen if worker is not None and worker.on and worker.node is not None)
    hold = timetable.hold_while
    return tuple(pod for node in nodes for pod in node.pods if _may_end(pod) and hold.means(pod))


def _may_end(pod: Pod) -> bool:
    """True if waiting for the pod may help.

    A drain leaves a DaemonSet's pods and static pods where they are, and they never end by themselves.
    """
    # Kubernetes: a pod that is deleted stays Running until its containers have ended.
    return pod.phase == "Running" and not (pod.terminating or pod.mirror or pod.of_daemon_set)
