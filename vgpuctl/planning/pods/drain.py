"""Which pods leave a node, which stay, and which forbid the drain: kubectl's rules under kubectl's names."""

from __future__ import annotations

from vgpuctl.model.fleet import Fleet, Node, Worker
from vgpuctl.model.pods import Budget, Pod
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.model.workloads import workload_of
from vgpuctl.planning.pods.freezing import sleeps_along

_PLAIN = DrainOptions()


def must_leave(pod: Pod, options: DrainOptions) -> bool:
    """True if the drain must move this pod.

    Mirror pods stay, and so do frozen pods. A DaemonSet's pods stay while their DaemonSet exists. Every other pod goes,
    finished ones too, unless the options leave it.
    """
    # kubectl drain: finished pods go; mirror pods and DaemonSet pods stay.
    if pod.mirror or (pod.of_daemon_set and not pod.orphaned and not pod.finished) or sleeps_along(pod, options):
        return False
    mine = options.of(pod.namespace)
    selected = mine.pod_selector is None or mine.pod_selector.matches(pod.labels)
    # kubectl drain: --pod-selector and --skip-wait-for-delete-timeout.
    return selected and not 0 < mine.skip_wait_for_delete_timeout_s < pod.overdue_s


def leaving_pods(node: Node | None, options: DrainOptions = _PLAIN) -> tuple[Pod, ...]:
    return tuple(pod for pod in node.pods if must_leave(pod, options)) if node else ()


def pods_to_move(worker: Worker, options: DrainOptions) -> tuple[Pod, ...]:
    """Return the pods that a drain of this worker still waits for. A VM that does not run runs no pods."""
    # Kubernetes: a silent node keeps its DaemonSet pods for ever, so what it lists says nothing.
    return leaving_pods(worker.node, options) if worker.on else ()


def objection(pod: Pod, options: DrainOptions) -> str | None:
    """Return why the drain may not delete this pod; None if it may.

    A pod that is ending already, or that ends with its workload, needs no permission.
    """
    if pod.finished or pod.terminating or not must_leave(pod, options) or workload_of(pod, options.scaled):
        return None
    # kubectl drain: a pod without a controller needs --force, and one with an emptyDir needs --delete-emptydir-data.
    # Bare pods (JupyterHub's notebooks) would refuse every night, so each namespace may have options of its own.
    mine = options.of(pod.namespace)
    if pod.orphaned and not mine.force:
        return f"{pod} belongs to a {pod.owner} that is gone (allow it with force)"
    if pod.empty_dir and not mine.delete_emptydir_data:
        return f"{pod} keeps data in an emptyDir (allow it with delete-emptydir-data)"
    if pod.owner is None and not mine.force:
        return f"{pod} has no controller that would replace it (allow it with force)"
    return None


def ends_with(fleet: Fleet, pod: Pod, options: DrainOptions) -> str:
    """Return the workload at zero whose controller ends this pod; "" if no controller does, or no longer does."""
    # Decision 0013: if another hand scaled the workload up again, its pods are evicted like any other.
    workload = workload_of(pod, options.scaled)
    now = fleet.workloads.get(workload.key) if workload else None
    return now.key if now is not None and now.sleeps else ""


def rivals(fleet: Fleet, pod: Pod, options: DrainOptions) -> str | None:
    """Return why the API server would not evict this pod: it evicts no pod that several budgets cover."""
    if workload_of(pod, options.scaled):
        return None
    # Kubernetes: the eviction API answers 500 for a pod under two budgets; kubectl fails such a pod at once.
    names = covering(fleet, pod)
    return f"{pod} is under several budgets, {' and '.join(names)}" if len(names) > 1 else None


def grace_s(pod: Pod, options: DrainOptions) -> int:
    """Return how long the pod may take to end."""
    mine = options.of(pod.namespace)
    return pod.grace_s if mine.grace_period_s is None else mine.grace_period_s


def within_s(worker: Worker, options: DrainOptions) -> float:
    """Return how long the drain may take: the longest time that the options give any pod still there."""
    pods = pods_to_move(worker, options)
    return max((options.of(pod.namespace).timeout_s for pod in pods), default=options.timeout_s)


def asks_budgets(pod: Pod) -> bool:
    """True if budgets decide about this pod. Pending and finished pods go without asking any budget."""
    # Kubernetes 1.36, eviction: Pending, finished and terminating pods bypass budgets.
    return pod.phase == "Running" and not pod.terminating


def covering(fleet: Fleet, pod: Pod) -> tuple[str, ...]:
    """Return the names of the budgets that the API server checks before it evicts the pod."""
    return tuple(sorted(budget.name for budget in fleet.budgets_over(pod))) if asks_budgets(pod) else ()


def budgets_to_pay(fleet: Fleet, pod: Pod) -> tuple[Budget, ...]:
    """Return the budgets that the pod's eviction takes something from."""
    if not asks_budgets(pod):
        return ()
    return tuple(budget for budget in fleet.budgets_over(pod) if not budget.lets_go(pod))


def lost_with_state(node: Node | None, options: DrainOptions = _PLAIN) -> tuple[Pod, ...]:
    """Return the pods that are lost if the suspended state of their VM is discarded.

    The options are those of the drain before the sleep: what it left there on purpose does not count.
    """
    # Kubernetes: a pod that is ending on a silent node stays listed until its kubelet is back.
    return tuple(pod for pod in leaving_pods(node, options) if not (pod.terminating or pod.finished))
