"""What a powered-off VM carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.requests import AttachVgpus, Request
from vgpuctl.planning.steps.rung import Rung


@dataclass(frozen=True, slots=True)
class Attach(Rung):
    """Give a powered-off VM these vGPUs instead of those it has."""

    vgpus: tuple[str, ...]
    verb: ClassVar[str] = "attach"

    def describe(self) -> str:
        return f"attach {' '.join(self.vgpus)}" if self.vgpus else "remove vGPUs"

    def done_in(self, fleet: Fleet) -> bool:
        return equipped(fleet.worker(self.worker), self.vgpus)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        worker = fleet.worker(self.worker)
        return (AttachVgpus(worker=worker.name, vm=worker.vm, vgpus=self.vgpus),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_worker(self.worker, vgpus=self.vgpus, memory_locked=True)


def equipped(worker: Worker, vgpus: tuple[str, ...]) -> bool:
    """Does the VM carry exactly these vGPUs, with all its memory reserved as they need it?"""
    return sorted(worker.vgpus) == sorted(vgpus) and (worker.memory_locked or not vgpus)
