"""What all steps share, and what each kind of step says about itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import ClassVar

from vgpuctl.model.fleet import Fleet, Node, Worker
from vgpuctl.model.requests import Request
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import UNDER_WAY, Wait
from vgpuctl.planning.signs import host_key, worker_keys

#: A patch of a node, a workload or a Machine.
MARK_S = 0.5
#: A change of a VM: its devices, or its power without writing or reading its memory.
CHANGE_S = 5.0
#: Assumed speed of a datastore.
MIB_A_SECOND = 500


class Look(Enum):
    """How a picture of a switch shows a step: steps that belong together have one colour."""

    MARK = "mark"
    SCALE = "scale"
    DRAIN = "drain"
    SUSPEND = "suspend"
    SHUT_DOWN = "shut-down"
    ATTACH = "attach"
    POWER_ON = "power-on"
    BACK = "wait-back"


@dataclass(frozen=True)
class BaseStep:
    """A step, and everything that other parts of the program know about its kind.

    `subject`: the name of the worker, or the key of the workload.
    """

    # Decision 0021: this knowledge lay in eleven files before, and one kind was missing in half of them.
    subject: str
    #: How long the step may be due before that counts as a failure.
    deadline_s: ClassVar[float] = 120.0
    #: How long an accepted request may show no effect before it may be sent again.
    effect_s: ClassVar[float] = 20.0
    #: How long the step may be due before `overdue` is asked instead. Most steps have nothing else to ask.
    overdue_after_s: ClassVar[float] = math.inf
    #: A switch does not turn back if it fails: the step is left for the next plan.
    optional: ClassVar[bool] = False
    #: No other step waits for it: its requests are sent beside the others, a few at a time.
    patient: ClassVar[bool] = False

    #: In a plan: `drain`. While it lasts: `draining`. Once it is done: `drained`; with "" no line reports it.
    verb: ClassVar[str] = ""
    doing: ClassVar[str] = "marking"
    finished: ClassVar[str] = ""
    #: Its word in a picture of the switch; "" to show what this very step did.
    bar: ClassVar[str] = ""
    look: ClassVar[Look] = Look.MARK
    #: It takes time, and is more than a mark on an object.
    lasts: ClassVar[bool] = False
    #: It changes pods, running VMs or the memory of a VM, so a person is asked before.
    disturbs: ClassVar[bool] = False
    #: It takes a worker down, even if no step waits for it any more.
    takes_down: ClassVar[bool] = False
    #: The kinds of vCenter tasks that carry it out.
    tasks: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def id(self) -> StepId:
        return self.of(self.subject)

    @classmethod
    def of(cls, subject: str) -> StepId:
        """Return the identity of this kind of step for that worker or workload."""
        return StepId(cls.__name__, subject)

    def describe(self) -> str:
        return self.verb

    def deed(self) -> str:
        """Return what the worker did not do if the step is late: `drain`."""
        return self.describe()

    def brief(self) -> str:
        """Return what the step does, without its details."""
        return self.describe()

    def assumed_s(self, fleet: Fleet) -> float:
        """Return how long the step takes, as far as that can be said without having measured one."""
        return MARK_S

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        """Return what to ask of the servers; empty if the step only waits for what they do by themselves."""
        return ()

    def waits_for(self, fleet: Fleet) -> Wait:
        """Return what holds the step up, apart from its own requests."""
        return UNDER_WAY

    def to_blame(self, fleet: Fleet) -> str:
        """Return, once its time is over, the object whose change could help, in words; "" if none is known."""
        return ""

    def hangs_on(self, fleet: Fleet) -> Iterable[str]:
        """Return the keys of the signs that show, after a failure, whether a new try could end otherwise."""
        return ()

    def overdue(self, fleet: Fleet) -> tuple[Request, ...]:
        """Return the requests that are sent instead once the step has been due for `overdue_after_s`."""
        return ()


@dataclass(frozen=True, slots=True)
class WorkerStep(BaseStep):
    """A rung of a worker's ladder: whether it is done, and what it changes, shows in that worker alone.

    Not an abstract class: `isinstance`, which planning asks for each step, would take three times as long.
    """

    @property
    def worker(self) -> str:
        return self.subject

    # Seen in the fleet and never remembered, so a crash or a lost reply changes nothing (architecture.md, One look).
    def is_done(self, worker: Worker) -> bool:
        raise NotImplementedError

    def applied(self, worker: Worker) -> Worker:
        """Return the worker as it is after the step."""
        raise NotImplementedError

    def hangs_on(self, fleet: Fleet) -> Iterable[str]:
        return (host_key(fleet.host_of(self.subject)), *worker_keys(self.subject))

    def done_in(self, fleet: Fleet) -> bool:
        return self.is_done(fleet.worker(self.subject))

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_this(self.applied(fleet.worker(self.subject)))


@dataclass(frozen=True, slots=True)
class WorkloadStep(BaseStep):
    """A change of a workload, before or after all ladders."""

    @property
    def workload(self) -> str:
        return self.subject


def state_s(fleet: Fleet, worker: str) -> float:
    """Return how long a suspend writes, or a resume reads, the VM's memory."""
    found = fleet.find(worker)
    # vSphere: a suspend writes the memory to the datastore; the frame buffer is not added to that file.
    return found.memory_mib / MIB_A_SECOND if found else 0.0


def node_of(fleet: Fleet, worker: str) -> Node:
    return the_node(fleet.worker(worker))


def the_node(worker: Worker) -> Node:
    if worker.node is None:
        raise LookupError(f"{worker.name} has no node")
    return worker.node
