"""Which pods leave a node, which stay, and which forbid the drain: kubectl's rules under kubectl's names."""

from __future__ import annotations

from vgpuctl.model.fleet import Node, Worker
from vgpuctl.model.pods import Pod
from vgpuctl.model.timetable import DrainOptions


def must_leave(pod: Pod) -> bool:
    """DaemonSet and mirror pods stay where they are; everything else goes, finished pods too."""
    return not pod.mirror and not (pod.owner or "").startswith("DaemonSet/")


def leaving_pods(node: Node | None) -> tuple[Pod, ...]:
    return tuple(pod for pod in node.pods if must_leave(pod)) if node else ()


def pods_to_move(worker: Worker) -> tuple[Pod, ...]:
    """What a drain of this worker still waits for. A VM that does not run runs no pods."""
    return leaving_pods(worker.node) if worker.on else ()


def objection(pod: Pod, options: DrainOptions) -> str | None:
    """Why the drain may not delete this pod; None when it may."""
    if pod.finished or pod.terminating or not must_leave(pod):
        return None
    if pod.empty_dir and not options.delete_emptydir_data:
        return f"{pod} keeps data in an emptyDir (allow it with delete-emptydir-data)"
    if pod.owner is None and not options.force:
        return f"{pod} has no controller that would replace it (allow it with force)"
    return None


def asks_budgets(pod: Pod) -> bool:
    """Pending and finished pods go without asking any budget."""
    return pod.phase == "Running" and not pod.terminating
