"""The last rung: make the labels true, and take our marks off the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vgpuctl.model.fleet import Fleet, Node, Worker
from vgpuctl.model.requests import PatchNode, Request
from vgpuctl.planning.steps.step import WorkerStep, node_of


@dataclass(frozen=True, slots=True)
class Label(WorkerStep):
    """Make the node's labels say what the VM really carries; None takes a label off."""

    labels: tuple[tuple[str, str | None], ...]
    verb: ClassVar[str] = "label"
    doing: ClassVar[str] = "labelling"
    finished: ClassVar[str] = "labelled"
    bar: ClassVar[str] = "label"

    def describe(self) -> str:
        return ", ".join(f"label {key}={value}" if value else f"remove label {key}" for key, value in self.labels)

    def brief(self) -> str:
        return self.verb

    def is_done(self, worker: Worker) -> bool:
        node = worker.node
        return node is None or not wrong(node, self.labels)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        node = node_of(fleet, self.worker)
        return (PatchNode(node=node.name, labels=wrong(node, self.labels)),)

    def applied(self, worker: Worker) -> Worker:
        node = worker.node
        return worker.with_node(labels=_labelled(node, self.labels)) if node else worker


def _labelled(node: Node, labels: tuple[tuple[str, str | None], ...]) -> dict[str, str]:
    # Kubernetes: a null in a merge patch deletes the label.
    said = {**node.labels, **dict(labels)}
    return {key: value for key, value in said.items() if value is not None}


def wrong(node: Node, labels: tuple[tuple[str, str | None], ...]) -> dict[str, str | None]:
    """Return the labels that the node does not bear like this."""
    return {key: value for key, value in labels if node.labels.get(key) != value}


@dataclass(frozen=True, slots=True)
class Uncordon(WorkerStep):
    """Take our record off, and our cordon with it; the same patch makes the labels true.

    Other programs' cordons stay.
    """

    labels: tuple[tuple[str, str | None], ...]
    verb: ClassVar[str] = "uncordon"
    doing: ClassVar[str] = "uncordoning"
    finished: ClassVar[str] = "back"
    bar: ClassVar[str] = "uncordon"
    #: A guest that was asked to shut down cannot be asked to stay up, so this step may have to wait for it.
    deadline_s: ClassVar[float] = 720.0

    def is_done(self, worker: Worker) -> bool:
        return worker.node is None or worker.node.record is None

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        node = node_of(fleet, self.worker)
        # gpu-operator#304: nodes that a person had cordoned were uncordoned. Only a cordon of ours is undone.
        ours = node.record is not None and node.record.cordoned
        # Kubernetes: a node that was deleted while its VM slept registers anew without our labels.
        labels = wrong(node, self.labels)
        # Decision 0002: with the version, the server refuses if a person cordoned the node since our look.
        patch = PatchNode.recording(
            node.name, None, node.record, labels=labels, unschedulable=False if ours else None, version=node.version
        )
        return (patch,)

    def applied(self, worker: Worker) -> Worker:
        node = worker.node
        if node is None:
            return worker
        cordoned = node.unschedulable and not (node.record is not None and node.record.cordoned)
        labels = _labelled(node, self.labels)
        return worker.with_node(labels=labels, record=None, unschedulable=cordoned)
