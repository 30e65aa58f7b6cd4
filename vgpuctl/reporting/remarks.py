"""What a switch may run into, said before it begins.

Remarks name pods that ask to be left alone, pods that end slowly, budgets and HA admission control in doubt, and sleeps
that cost more than a boot.
"""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.names import fold
from vgpuctl.basics.phrases import first_names
from vgpuctl.model.conduct import OnStuck
from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.plan import Plan, Remark
from vgpuctl.model.pods import GRACE_S, Freeze
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import stops
from vgpuctl.planning.checks.admission import admission_in_doubt
from vgpuctl.planning.checks.datastore_space import suspends
from vgpuctl.planning.pods.budgets import dead_ends
from vgpuctl.planning.pods.drain import grace_s, lost_with_state, pods_to_move, within_s
from vgpuctl.planning.pods.freezing import frozen_on, said_of
from vgpuctl.planning.scaling import missing_workloads
from vgpuctl.planning.steps import Suspend
from vgpuctl.reporting.forecast import StepTimes, asleep_s, off_s
from vgpuctl.reporting.step_history import Earlier


def remarks(fleet: Fleet, wish: Wish) -> tuple[Remark, ...]:
    leaving = [w for name in wish.workers if (w := fleet.workers.get(name)) and stops(wish, w)]
    found = [Remark(worker.host, f"{worker.name}: {text}") for worker in leaving for text in _of(worker, wish)]
    for end in dead_ends(fleet, wish):
        hosts = dict.fromkeys(fleet.host_of(worker) for worker in end.workers)
        forced = wish.conduct.on_stuck is OnStuck.FORCE
        text = f"{end.message} Its pods are deleted at the deadline." if forced else end.message
        found += [Remark(host, text) for host in hosts if forced or not end.certain]
    found += admission_in_doubt(fleet, wish)
    if leaving:
        found += [Remark("", f"Kubernetes shows us no {kind}: {_WITHOUT[kind]}.") for kind in fleet.unseen]
    return (
        *found,
        *_given_up(fleet, wish),
        *missing_workloads(fleet, wish),
        *_unshielded(leaving),
        *_unmeasured(fleet, wish, leaving),
        *_left_out(fleet),
    )


def _given_up(fleet: Fleet, wish: Wish) -> Iterator[Remark]:
    """Yield the pods that are lost with suspended states that are discarded."""
    for name, mine in wish.workers.items():
        worker = fleet.workers.get(name)
        if worker and mine.given_up and worker.power is Power.SUSPENDED:
            for pod in lost_with_state(worker.node):
                frozen = "sleeps with it" if pod.freeze is Freeze.READY else "was on it when it was suspended"
                text = f"{name}: {pod} {frozen}, and is lost with the suspended state"
                yield Remark(worker.host, text)


def _left_out(fleet: Fleet) -> Iterator[Remark]:
    """Yield the objects that cannot be read: any of them may matter to this plan."""
    kinds: dict[str, list[str]] = {}
    for each in fleet.unreadable:
        kinds.setdefault(each.kind, []).append(each.name)
    for kind, names in kinds.items():
        yield Remark("", f"{first_names(names)} ({kind}) cannot be read, and {'are' if names[1:] else 'is'} left out.")


def _unmeasured(fleet: Fleet, wish: Wish, leaving: list[Worker]) -> Iterator[Remark]:
    """Yield the datastores that suspends write to and whose room is not known."""
    stores = dict.fromkeys(worker.datastore for worker in leaving if worker.datastore and suspends(wish, worker))
    if unseen := [store for store in stores if store not in fleet.datastores]:
        shown = f"vCenter does not show the room of {first_names(unseen)}"
        yield Remark("", f"{shown}: a suspend may fail for want of it.")


def _unshielded(leaving: list[Worker]) -> Iterator[Remark]:
    # Cluster API: a MachineHealthCheck replaces a Machine whose node is silent for some minutes (decision 0014).
    names = [worker.name for worker in leaving if worker.node and worker.node.machine and worker.machine is None]
    if names:
        told = f"The Machine{'s' * (len(names) > 1)} of {' '.join(fold(names))} cannot be marked from here"
        yield Remark("", f"{told}: a MachineHealthCheck may replace the worker while it sleeps, and delete the VM.")


_WITHOUT = {
    "daemonsets": "a pod whose DaemonSet is gone stays like any other",
    "jobs": "Jobs that count evictions as failures are not named",
    "deployments": "none of them is scaled to zero",
    "statefulsets": "none of them is scaled to zero",
    "horizontalpodautoscalers": "a workload that an autoscaler sizes looks like any other",
    "volumeattachments": "nothing waits until the volumes of gone pods are detached",
    "persistentvolumeclaims": "nothing waits until the volumes of gone pods are detached",
}


def _of(worker: Worker, wish: Wish) -> Iterator[str]:
    yield from said_of(worker, wish.drain)
    pods = [pod for pod in pods_to_move(worker, wish.drain) if not pod.terminating and not pod.finished]
    # cluster-autoscaler (`safe-to-evict: "false"`) and Karpenter (`do-not-disrupt`): so people say "not now" already.
    for annotation in dict.fromkeys(each for pod in pods for each in pod.not_now):
        names = first_names([pod for pod in pods if annotation in pod.not_now])
        yield f"{names} asked not to be disturbed ({annotation})"
    # Kubernetes: an eviction counts against a Job's backoffLimit, unless its podFailurePolicy ignores DisruptionTarget.
    if counted := [pod for pod in pods if pod.counted]:
        why = "an eviction counts against the Job's backoffLimit (no podFailurePolicy ignores it)"
        yield f"{first_names(counted)}: {why}"
    within = within_s(worker, wish.drain)
    # Kubernetes: a grace period may be an hour, so it is said before the switch begins.
    for grace in sorted({grace for pod in pods if (grace := grace_s(pod, wish.drain)) > GRACE_S}):
        names = first_names([pod for pod in pods if grace_s(pod, wish.drain) == grace])
        late = f", and the drain is given {format_duration(within)}" if grace >= within else ""
        yield f"{names} may take up to {format_duration(grace)} to end{late}"


def suspend_slower_than_boot(plan: Plan, fleet: Fleet, earlier: Earlier) -> tuple[Remark, ...]:
    """Return a remark if shutting down and booting would be quicker than suspending and resuming.

    The workers go at once, so the slowest decides. A frozen pod would not outlive a boot, so then there is no remark.
    """
    # vSphere: a suspend writes the VM's whole memory to the datastore, and a resume reads it back.
    steps = [step for step in plan if isinstance(step, Suspend)]
    if any(frozen_on(fleet.worker(step.worker).node, step.drain) for step in steps):
        return ()
    names = [step.worker for step in steps]
    times = StepTimes(fleet, earlier)
    asleep = {name: asleep_s(name, times) for name in names}
    slowest = max(asleep, key=asleep.__getitem__, default="")
    off = max((off_s(name, times) for name in names), default=0.0)
    if not slowest or asleep[slowest] <= off:
        return ()
    worker = fleet.worker(slowest)
    size = f", {worker.memory_mib / 1024:.0f} GB of memory each way" if worker.memory_mib else ""
    suspending = f"to suspend and resume {slowest} takes about {_rounded(asleep[slowest])}{size}"
    booting = f"to shut it down and boot it (asleep: off) would take about {_rounded(off)}"
    return (Remark(worker.host, f"{suspending}; {booting}"),)


def _rounded(duration_s: float) -> str:
    """Return the duration in whole minutes, if it is long: these figures are estimates."""
    return format_duration(duration_s if duration_s < 120 else 60 * round(duration_s / 60))
