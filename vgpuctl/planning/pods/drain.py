"""Which pods leave a node, which stay, and which forbid the drain: kubectl's rules under kubectl's names."""

from __future__ import annotations

from vgpuctl.model.fleet import Fleet, Node, Worker
from vgpuctl.model.pods import Budget, Pod
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.model.workloads import workload_of
from vgpuctl.planning.pods.freezing import sleeps_along

_PLAIN = DrainOptions()


def must_leave(pod: Pod, options: DrainOptions) -> bool:
    """Mirror pods stay where they are, those of DaemonSets too while these are there, and those that are frozen;
    everything else goes, finished pods too, unless the options leave it."""
    if pod.mirror or (_of_daemon_set(pod) and not pod.orphaned and not pod.finished) or sleeps_along(pod, options):
        return False
    mine = options.of(pod.namespace)
    selected = mine.pod_selector is None or mine.pod_selector.matches(pod.labels)
    return selected and not 0 < mine.skip_wait_for_delete_timeout_s < pod.overdue_s


def _of_daemon_set(pod: Pod) -> bool:
    return (pod.owner or "").startswith("DaemonSet/")


def leaving_pods(node: Node | None, options: DrainOptions = _PLAIN) -> tuple[Pod, ...]:
    return tuple(pod for pod in node.pods if must_leave(pod, options)) if node else ()


def pods_to_move(worker: Worker, options: DrainOptions) -> tuple[Pod, ...]:
    """What a drain of this worker still waits for. A VM that does not run runs no pods."""
    return leaving_pods(worker.node, options) if worker.on else ()


def objection(pod: Pod, options: DrainOptions) -> str | None:
    """Why the drain may not delete this pod; None when it may. A pod that ends already, or with its workload, needs
    nobody's leave."""
    if pod.finished or pod.terminating or not must_leave(pod, options) or workload_of(pod, options.scaled):
        return None
    mine = options.of(pod.namespace)
    if pod.orphaned and not mine.force:
        return f"{pod} belongs to a {pod.owner} that is gone (allow it with force)"
    if pod.empty_dir and not mine.delete_emptydir_data:
        return f"{pod} keeps data in an emptyDir (allow it with delete-emptydir-data)"
    if pod.owner is None and not mine.force:
        return f"{pod} has no controller that would replace it (allow it with force)"
    return None


def ends_with(fleet: Fleet, pod: Pod, options: DrainOptions) -> str:
    """The workload that is at zero and whose controller ends the pod; "" where nobody else does, or does any more."""
    workload = workload_of(pod, options.scaled)
    now = fleet.workloads.get(workload.key) if workload else None
    return now.key if now is not None and now.sleeps else ""


def rivals(fleet: Fleet, pod: Pod, options: DrainOptions) -> str | None:
    """The API server evicts no pod that several budgets cover."""
    if workload_of(pod, options.scaled):
        return None
    names = covering(fleet, pod)
    return f"{pod} is under several budgets, {' and '.join(names)}" if len(names) > 1 else None


def grace_s(pod: Pod, options: DrainOptions) -> int:
    """How long it may take to end."""
    mine = options.of(pod.namespace)
    return pod.grace_s if mine.grace_period_s is None else mine.grace_period_s


def within_s(worker: Worker, options: DrainOptions) -> float:
    """How long the drain may take: the longest time that any pod still there is given."""
    pods = pods_to_move(worker, options)
    return max((options.of(pod.namespace).timeout_s for pod in pods), default=options.timeout_s)


def asks_budgets(pod: Pod) -> bool:
    """Pending and finished pods go without asking any budget."""
    return pod.phase == "Running" and not pod.terminating


def covering(fleet: Fleet, pod: Pod) -> tuple[str, ...]:
    """The names of the budgets that the API server looks at before it evicts the pod."""
    return tuple(sorted(budget.name for budget in fleet.budgets_over(pod))) if asks_budgets(pod) else ()


def budgets_to_pay(fleet: Fleet, pod: Pod) -> tuple[Budget, ...]:
    """Those of which its eviction takes something."""
    if not asks_budgets(pod):
        return ()
    return tuple(budget for budget in fleet.budgets_over(pod) if not budget.lets_go(pod))
