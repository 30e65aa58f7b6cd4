"""Pods that sleep with their worker instead of leaving it: experimental, and only pods that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.fleet import Node, Worker
from vgpuctl.model.pods import Freeze, Pod
from vgpuctl.model.timetable import DrainOptions

HAZARDS = (
    "its connections break; NCCL, NFS mounts and tokens may not survive; its volumes stay attached, and an "
    "activeDeadlineSeconds runs on"
)
# Kubernetes: the taint manager deletes a silent node's pods after 300 s, unless they tolerate both taints for ever.
# Measured on a real control plane: tolerations that were patched in later did not save the pod.
_LINES = "tolerations: [{key: %s, operator: Exists, effect: NoExecute}, {key: %s, operator: Exists, effect: NoExecute}]"
LINES = _LINES % ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


def sleeps_along(pod: Pod, options: DrainOptions) -> bool:
    """True if the pod stays on its node while the VM is suspended. A pod that is ending or has ended does not."""
    # Measured (real control plane, kubelet frozen for 60 s): the pod kept its UID, and was Ready 15 s after the resume.
    return options.freeze and pod.freeze is Freeze.READY and not (pod.terminating or pod.finished)


def frozen_on(node: Node | None, options: DrainOptions) -> tuple[Pod, ...]:
    return tuple(pod for pod in node.pods if sleeps_along(pod, options)) if node else ()


def said_of(worker: Worker, options: DrainOptions) -> Iterator[str]:
    """Yield what pods' owners should know before their pods are frozen, or are not."""
    for pod in frozen_on(worker.node, options):
        yield f"{pod} sleeps with its VM (experimental): {HAZARDS}"
    for pod in worker.node.pods if worker.node and options.freeze else ():
        if pod.freeze is Freeze.UNPREPARED and not pod.finished:
            yield (
                f"{pod} asks to be frozen, but would be deleted while it sleeps, so it is evicted; its template "
                f"lacks {LINES}"
            )
