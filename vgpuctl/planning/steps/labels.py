"""The last rung: the label is made true, and what is ours is taken off the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.requests import PatchNode, Request
from vgpuctl.planning.steps.rung import Rung, node_of


@dataclass(frozen=True, slots=True)
class Label(Rung):
    """Say which profile the VM really carries; an empty value takes the label off."""

    key: str
    value: str | None

    def describe(self) -> str:
        return f"label {self.key}={self.value}" if self.value else f"remove label {self.key}"

    def done_in(self, fleet: Fleet) -> bool:
        node = fleet.worker(self.worker).node
        return node is None or node.labels.get(self.key) == self.value

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        return (PatchNode(node=node_of(fleet, self.worker).name, labels={self.key: self.value}),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        node = fleet.worker(self.worker).node
        if node is None:
            return fleet
        others = {key: value for key, value in node.labels.items() if key != self.key}
        return fleet.with_node(self.worker, labels=others if self.value is None else others | {self.key: self.value})


@dataclass(frozen=True, slots=True)
class Uncordon(Rung):
    """Take our record off, and our cordon with it; the label is made true in the same patch. Another's cordon stays."""

    key: str
    value: str | None
    verb: ClassVar[str] = "uncordon"

    def done_in(self, fleet: Fleet) -> bool:
        node = fleet.worker(self.worker).node
        return node is None or node.record is None

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        node = node_of(fleet, self.worker)
        ours = node.record is not None and node.record.cordoned
        labels = {self.key: self.value}
        patch = PatchNode.recording(
            node.name, None, labels=labels, unschedulable=False if ours else None, version=node.version
        )
        return (patch,)

    def applied_to(self, fleet: Fleet) -> Fleet:
        node = fleet.worker(self.worker).node
        if node is None:
            return fleet
        ours = node.record is not None and node.record.cordoned
        fleet = Label(self.worker, self.key, self.value).applied_to(fleet)
        return fleet.with_node(self.worker, record=None, unschedulable=node.unschedulable and not ours)
