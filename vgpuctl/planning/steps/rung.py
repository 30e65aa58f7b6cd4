"""What all steps share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vgpuctl.model.fleet import Fleet, Node
from vgpuctl.model.requests import Request


@dataclass(frozen=True, slots=True)
class Rung:
    """What all steps share: the worker (or workload, by its key) they are about, and a name that is the same in every
    plan."""

    worker: str
    #: How long the step may be due before that counts as a failure.
    deadline_s: ClassVar[float] = 120.0
    #: How long a request that was taken may show no effect before it may be sent again.
    effect_s: ClassVar[float] = 20.0
    #: A switch does not turn back for want of it: it is left for the next plan.
    optional: ClassVar[bool] = False
    verb: ClassVar[str] = ""

    @property
    def name(self) -> str:
        return f"{type(self).__name__}/{self.worker}"

    def describe(self) -> str:
        return self.verb

    def waits_for(self, fleet: Fleet) -> str:
        return ""

    def failed_for(self, fleet: Fleet) -> str:
        """Why it is not done although its time is over, for whoever must do something about it."""
        return self.waits_for(fleet)

    def overdue(self, fleet: Fleet, due_for_s: float) -> tuple[Request, ...]:
        """What is asked besides once a step has been due for so long; most steps know nothing more to ask."""
        return ()


def node_of(fleet: Fleet, worker: str) -> Node:
    node = fleet.worker(worker).node
    if node is None:
        raise LookupError(f"{worker} has no node")
    return node
