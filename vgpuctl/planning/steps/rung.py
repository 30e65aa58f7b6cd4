"""What all steps share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from vgpuctl.model.fleet import Fleet, Node, Worker
from vgpuctl.model.requests import Request


@dataclass(frozen=True)
class Base:
    """What all steps share: the worker (or workload, by its key) they are about, and a name that is the same in every
    plan."""

    worker: str
    #: How long the step may be due before that counts as a failure.
    deadline_s: ClassVar[float] = 120.0
    #: How long a request that was taken may show no effect before it may be sent again.
    effect_s: ClassVar[float] = 20.0
    #: How long it may be due before something else is asked; most steps know nothing else.
    overdue_after_s: ClassVar[float] = math.inf
    #: A switch does not turn back for want of it: it is left for the next plan.
    optional: ClassVar[bool] = False
    #: Nobody waits for it: its requests go beside those of others, a few at a time.
    patient: ClassVar[bool] = False
    verb: ClassVar[str] = ""

    @cached_property
    def name(self) -> str:
        return f"{type(self).__name__}/{self.worker}"

    def describe(self) -> str:
        return self.verb

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        """None where nothing is asked of anybody, and the step waits for what others do by themselves."""
        return ()

    def waits_for(self, fleet: Fleet) -> str:
        return ""

    def failed_for(self, fleet: Fleet) -> str:
        """Why it is not done although its time is over, for whoever must do something about it."""
        return self.waits_for(fleet)

    def overdue(self, fleet: Fleet) -> tuple[Request, ...]:
        """What is asked instead once it has been due for longer than that."""
        return ()


@dataclass(frozen=True, slots=True)
class Rung(Base):
    """A step of a worker's ladder: whether it is done, and what comes of it, is seen in that worker alone.

    Not an abstract class: to ask what kind of step it is, as planning does for each, would cost three times as much.
    """

    def done_by(self, worker: Worker) -> bool:
        raise NotImplementedError

    def after(self, worker: Worker) -> Worker:
        raise NotImplementedError

    def done_in(self, fleet: Fleet) -> bool:
        return self.done_by(fleet.worker(self.worker))

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_this(self.after(fleet.worker(self.worker)))


def node_of(fleet: Fleet, worker: str) -> Node:
    return the_node(fleet.worker(worker))


def the_node(worker: Worker) -> Node:
    if worker.node is None:
        raise LookupError(f"{worker.name} has no node")
    return worker.node
