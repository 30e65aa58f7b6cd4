"""Between cordon and drain, on a second try: the pods that the first try failed on leave before any other pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vgpuctl.model.fleet import Worker
from vgpuctl.model.pods import Pod
from vgpuctl.planning.pods.drain import pods_to_move
from vgpuctl.planning.steps.leaving import Drain


@dataclass(frozen=True, slots=True)
class DrainFirst(Drain):
    """Evict only the pods that the last try failed on. All drains of their host wait for it.

    So a try that fails on them again has disturbed no other pod. `first`: their UIDs.
    """

    first: frozenset[str] = frozenset()
    verb: ClassVar[str] = "drain first the pods it failed on"
    doing: ClassVar[str] = "draining first the pods it failed on"
    finished: ClassVar[str] = "drained the pods it failed on"
    bar: ClassVar[str] = "drain first"

    def deed(self) -> str:
        return "drain"

    def pods_of(self, worker: Worker) -> tuple[Pod, ...]:
        # A pod that took over the name has another UID. It leaves with the others.
        return tuple(pod for pod in pods_to_move(worker, self.options) if pod.uid in self.first)

    def applied(self, worker: Worker) -> Worker:
        gone = frozenset(pod.uid for pod in self.pods_of(worker))
        return worker.with_node(
            pods=tuple(pod for pod in worker.node.pods if pod.uid not in gone) if worker.node else ()
        )
