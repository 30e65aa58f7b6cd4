"""Workloads of a shift: to zero before any worker leaves, and back once all are back. No budget is asked for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.requests import Request, ScaleWorkload
from vgpuctl.model.wait import UNDER_WAY, Reason, Wait
from vgpuctl.model.workloads import SIZE_ANNOTATION, Scaled
from vgpuctl.planning.steps.step import Look, WorkloadStep


@dataclass(frozen=True, slots=True)
class ScaleDown(WorkloadStep):
    """Scale a workload to zero, and record its size in the same patch.

    If another hand scales it up again, that size stays.
    """

    shift: str
    timetable: str
    verb: ClassVar[str] = "scale to zero"
    doing: ClassVar[str] = "scaling to zero"
    finished: ClassVar[str] = "scaled to zero"
    bar: ClassVar[str] = "to zero"
    look: ClassVar[Look] = Look.SCALE
    lasts: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True

    def done_in(self, fleet: Fleet) -> bool:
        workload = fleet.workloads.get(self.workload)
        return workload is None or workload.scaled is not None or workload.sleeps

    def _mark(self, fleet: Fleet, now: str) -> Scaled:
        size = fleet.workloads[self.workload].replicas
        return Scaled(shift=self.shift, timetable=self.timetable, since=now, replicas=size)

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        # Decision 0013: the size and our mark are one patch, so that neither can be there without the other.
        return (ScaleWorkload(workload=fleet.workloads[self.workload], replicas=0, scaled=self._mark(fleet, now)),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_workload(self.workload, replicas=0, scaled=self._mark(fleet, ""))


@dataclass(frozen=True, slots=True)
class ScaleUp(WorkloadStep):
    """Give a workload its size back, unless it was given another size meanwhile, and take our mark off."""

    timetable: str
    verb: ClassVar[str] = "scale back"
    doing: ClassVar[str] = "scaling back"
    finished: ClassVar[str] = "scaled back"
    bar: ClassVar[str] = "back"
    look: ClassVar[Look] = Look.SCALE
    lasts: ClassVar[bool] = True

    def done_in(self, fleet: Fleet) -> bool:
        workload = fleet.workloads.get(self.workload)
        return workload is None or workload.scaled is None or workload.scaled.timetable != self.timetable

    def _size(self, fleet: Fleet) -> int | None:
        # Decision 0013: another hand that scaled the workload meanwhile has the last word.
        workload = fleet.workloads[self.workload]
        return workload.scaled.replicas if workload.scaled and workload.sleeps else workload.replicas

    def requests(self, fleet: Fleet, now: str) -> tuple[Request, ...]:
        workload, size = fleet.workloads[self.workload], self._size(fleet)
        if size is None:
            return ()
        return (ScaleWorkload(workload=workload, replicas=size if workload.sleeps else None, scaled=None),)

    def applied_to(self, fleet: Fleet) -> Fleet:
        return fleet.with_workload(self.workload, replicas=self._size(fleet) or 0, scaled=None)

    def waits_for(self, fleet: Fleet) -> Wait:
        # A size that cannot be read is never guessed (docs/how-to/scale.md).
        return UNDER_WAY if self._size(fleet) is not None else Wait.of(Reason.SIZE, SIZE_ANNOTATION)
