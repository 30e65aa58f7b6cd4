"""Beside the ladder, for workers that Cluster API manages: their Machine says that silence is no sign of a fault."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.machine import Machine
from vgpuctl.model.requests import PatchMachine, Request
from vgpuctl.planning.steps.rung import Rung


@dataclass(frozen=True, slots=True)
class Shield(Rung):
    """Before the VM stops: a health check may have the Machine of a silent node replaced within minutes, and its VM
    with it. Who has said so already need not be us."""

    verb: ClassVar[str] = "shield its Machine"

    def done_in(self, fleet: Fleet) -> bool:
        machine = fleet.worker(self.worker).machine
        return machine is None or machine.shielded

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        return (PatchMachine(worker=self.worker, machine=machine_of(fleet, self.worker), shield=True),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        machine = fleet.worker(self.worker).machine
        if machine is None or machine.shielded:
            return fleet
        return fleet.with_worker(self.worker, machine=replace(machine, shielded=True, ours=True))


@dataclass(frozen=True, slots=True)
class Unshield(Rung):
    """Once the node is truly back. Found on the Machine, so it is not forgotten where the node was deleted meanwhile;
    another's word stays."""

    verb: ClassVar[str] = "unshield its Machine"
    deadline_s: ClassVar[float] = 300.0
    optional: ClassVar[bool] = True

    def done_in(self, fleet: Fleet) -> bool:
        machine = fleet.worker(self.worker).machine
        return machine is None or not machine.ours

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        return (PatchMachine(worker=self.worker, machine=machine_of(fleet, self.worker), shield=False),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        machine = fleet.worker(self.worker).machine
        if machine is None or not machine.ours:
            return fleet
        return fleet.with_worker(self.worker, machine=replace(machine, shielded=False, ours=False))


def machine_of(fleet: Fleet, worker: str) -> Machine:
    machine = fleet.worker(worker).machine
    if machine is None:
        raise LookupError(f"{worker} has no Machine")
    return machine
