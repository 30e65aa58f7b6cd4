"""At the foot of the ladder: the worker's node says that it sleeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vgpuctl.basics.change import changed
from vgpuctl.model.fleet import Fleet, Node, Worker
from vgpuctl.model.record import ASLEEP, MARKS, Record
from vgpuctl.model.requests import PatchNode, Request
from vgpuctl.model.wish import Sleep
from vgpuctl.planning.steps.step import WorkerStep, node_of


@dataclass(frozen=True, slots=True)
class MarkAsleep(WorkerStep):
    """Record on the node that it sleeps, with its last signs of life: they later show which evidence is old.

    The mark also says for how long and why: for people, and for programs that would count the node as broken or remove
    it.
    """

    wish: str
    awake_before: tuple[str, ...] = ()
    sleep: Sleep | None = None
    verb: ClassVar[str] = "mark asleep"
    bar: ClassVar[str] = "mark"
    #: Many workers may be going to sleep at the time when others must wake.
    #: Decision 0015: in one queue with the starts, 128 marks cost a switch of 8 hosts × 4 cards about 0.1 s.
    patient: ClassVar[bool] = True

    def is_done(self, worker: Worker) -> bool:
        return worker.on or worker.node is None or (worker.node.unschedulable and _marked(worker.node))

    def _record(self, node: Node, now: str) -> Record:
        ours = not node.unschedulable or (node.record is not None and node.record.cordoned)
        record = node.record or Record(
            wish=self.wish, state=ASLEEP, since=now, cordoned=ours, awake_before=self.awake_before
        )
        # Kubernetes: three or more NotReady nodes, at least 55 % of a zone, stop evictions in the whole zone.
        # Marks that another program has set are not claimed, so they stay when the node is back.
        if self.sleep is not None:
            lacking = tuple(mark for mark in MARKS if mark not in node.marks and mark not in record.marks)
            record = changed(record, until=self.sleep.until, why=self.sleep.why, marks=record.marks + lacking)
        # Decision 0003: the last Lease and heartbeat are the only way to tell old evidence from new.
        return changed(record, cordoned=ours).asleep(since=now, lease=node.lease_renewed, heartbeat=node.heartbeat)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        node = node_of(fleet, self.worker)
        record = self._record(node, now)
        return (PatchNode.recording(node.name, record, node.record, unschedulable=True, version=node.version),)

    def applied(self, worker: Worker) -> Worker:
        node = worker.node
        if node is None:
            return worker
        return worker.with_node(unschedulable=True, record=self._record(node, ""))


def _marked(node: Node) -> bool:
    record = node.record
    # Decision 0003: another Lease means that the VM ran since, so the node is marked anew.
    return record is not None and record.state == ASLEEP and record.lease == node.lease_renewed
