"""Notices that pods will leave or sleep along, one for each owner; and that a coming shift is at risk, on its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vgpuctl.basics.phrases import first_names
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.notice import Notice, Subject
from vgpuctl.model.plan import Plan
from vgpuctl.model.pods import Pod
from vgpuctl.model.wish import Wish
from vgpuctl.model.workloads import workload_of
from vgpuctl.planning.pods.drain import pods_to_move
from vgpuctl.planning.pods.freezing import frozen_on
from vgpuctl.planning.steps import ShutDown, Suspend
from vgpuctl.reporting.outlook import News

#: The most objects that get a notice, so that the number of calls does not grow with the estate.
MOST = 50
SHIFT_AT_RISK, SHIFT_FITS = "ShiftAtRisk", "ShiftFits"

Concerned = dict[Subject, list[tuple[Pod, str]]]


def notices(fleet: Fleet, wish: Wish, plan: Plan) -> list[Notice]:
    leaving: Concerned = {}
    scaled: Concerned = {}
    frozen: Concerned = {}
    for step in plan:
        if isinstance(step, Suspend | ShutDown):
            worker = fleet.worker(step.worker)
            for pod in pods_to_move(worker, wish.drain):
                _gather(scaled if workload_of(pod, wish.drain.scaled) else leaving, [pod], worker.name)
            _gather(frozen, frozen_on(worker.node, wish.drain) if isinstance(step, Suspend) else (), worker.name)
    ends = "end, for their workload is scaled to zero"
    return [*_told(leaving, wish, "be evicted"), *_told(scaled, wish, ends), *_told(frozen, wish, "sleep along")][:MOST]


def outlook_notices(found: Iterable[News], fleet: Fleet) -> list[Notice]:
    """Return what is told of a coming shift, as notices on the nodes that it concerns."""
    told: list[Notice] = []
    for news in found:
        reason = SHIFT_AT_RISK if news.at_risk else SHIFT_FITS
        workers = (fleet.workers.get(name) for name in news.workers)
        nodes = (worker.node.name for worker in workers if worker and worker.node)
        told += [Notice(Subject.node(node), news.message, reason, news.at_risk) for node in nodes]
    return told[:MOST]


def _gather(into: Concerned, pods: Iterable[Pod], worker: str) -> None:
    for pod in pods:
        if not (pod.terminating or pod.finished):
            into.setdefault(_subject(pod), []).append((pod, worker))


def _subject(pod: Pod) -> Subject:
    if pod.owner is None:
        return Subject("v1", "Pod", pod.namespace, pod.name, pod.uid)
    kind, _, name = pod.owner.partition("/")
    return Subject(pod.owner_version, kind, pod.namespace, name, pod.owner_uid)


def _told(concerned: Concerned, wish: Wish, what: str) -> Iterator[Notice]:
    for subject, pods in concerned.items():
        names = [pod.name for pod, _ in pods]
        workers = list(dict.fromkeys(worker for _, worker in pods))
        where = workers[0] if len(workers) == 1 else f"{len(workers)} workers"
        yield Notice(subject, f"{wish.name} begins on {where}: {first_names(names)} will {what}.")
