"""Beside the ladder, for workers that Cluster API manages: their Machine says that silence is no sign of a fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from vgpuctl.basics.change import changed
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.machine import Machine
from vgpuctl.model.requests import PatchMachine, Request
from vgpuctl.planning.steps.step import WorkerStep


@dataclass(frozen=True, slots=True)
class Shield(WorkerStep):
    """Mark the worker's Machine before the VM stops. A mark that another program set serves as well.

    Without it, a health check may replace the Machine and the VM of a silent node within minutes.
    """

    verb: ClassVar[str] = "shield its Machine"
    doing: ClassVar[str] = "shielding its Machine"
    bar: ClassVar[str] = "shield"

    def is_done(self, worker: Worker) -> bool:
        return worker.machine is None or worker.machine.shielded

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        # Cluster API: a MachineHealthCheck leaves a Machine with `cluster.x-k8s.io/skip-remediation` alone.
        return (PatchMachine(worker=self.worker, machine=machine_of(fleet, self.worker), shield=True),)

    def applied(self, worker: Worker) -> Worker:
        machine = worker.machine
        if machine is None or machine.shielded:
            return worker
        return changed(worker, machine=replace(machine, shielded=True, ours=True))


@dataclass(frozen=True, slots=True)
class Unshield(WorkerStep):
    """Take our mark off the Machine once the node is truly back; another program's mark stays.

    The mark is found on the Machine, so it is not forgotten if the node was deleted meanwhile.
    """

    verb: ClassVar[str] = "unshield its Machine"
    doing: ClassVar[str] = "unshielding its Machine"
    bar: ClassVar[str] = "unshield"
    #: Decision 0014: a mark that could not be taken off turns no switch back; the next plan finds it.
    deadline_s: ClassVar[float] = 300.0
    optional: ClassVar[bool] = True

    def is_done(self, worker: Worker) -> bool:
        return worker.machine is None or not worker.machine.ours

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        return (PatchMachine(worker=self.worker, machine=machine_of(fleet, self.worker), shield=False),)

    def applied(self, worker: Worker) -> Worker:
        machine = worker.machine
        if machine is None or not machine.ours:
            return worker
        return changed(worker, machine=replace(machine, shielded=False, ours=False))


def machine_of(fleet: Fleet, worker: str) -> Machine:
    machine = fleet.worker(worker).machine
    if machine is None:
        raise LookupError(f"{worker} has no Machine")
    return machine
