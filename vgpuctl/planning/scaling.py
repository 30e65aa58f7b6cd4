"""Workloads that a shift scales to zero: which ones, what else decides their size, and how they join the ladders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from vgpuctl.basics.nearest import nearest
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import RefusedError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Remark, Step
from vgpuctl.model.step_id import StepId
from vgpuctl.model.timetable import DrainOptions, Shift, Timetable
from vgpuctl.model.wish import Wish, WorkloadWish
from vgpuctl.model.workloads import OWNS_PODS
from vgpuctl.planning.steps import Drain, ScaleDown, ScaleUp, Uncordon


def workload_wishes(
    fleet: Fleet, timetable: Timetable, shift: Shift, left: Mapping[str, Departure]
) -> dict[str, WorkloadWish]:
    """Return what becomes of each workload: the shift's workloads go to zero.

    Workloads that this timetable scaled for another shift get their size back.
    """
    origins = {departure.origin for departure in left.values()}
    found: dict[str, WorkloadWish] = {}
    for key, workload in fleet.workloads.items():
        if shift.scales(workload):
            before = (timetable.shifts[o].scales(workload) if o else workload.scaled is not None for o in origins)
            found[key] = WorkloadWish(asleep=True, asleep_before=all(before))
        elif workload.scaled is not None and workload.scaled.timetable == timetable.name:
            found[key] = WorkloadWish(asleep=False, asleep_before=True)
    # A workload that is written out and missing stays in the wish, so that a remark can name it.
    written = (choice.key for choice in shift.scale if choice.key)
    return dict.fromkeys(written, WorkloadWish(asleep=True, asleep_before=True)) | found


def former_workloads(wish: Wish) -> dict[str, WorkloadWish]:
    return {key: replace(mine, asleep=mine.asleep_before) for key, mine in wish.workloads.items()}


def with_scaled(options: DrainOptions, fleet: Fleet, wishes: Mapping[str, WorkloadWish]) -> DrainOptions:
    """Return the drain options in which the pods of these workloads end with them and need no permission."""
    asleep = (fleet.workloads[key] for key, mine in wishes.items() if mine.asleep and key in fleet.workloads)
    return replace(options, scaled=tuple(asleep))


def join(fleet: Fleet, wish: Wish, steps: tuple[Step, ...], needs: dict[StepId, frozenset[StepId]]) -> tuple[Step, ...]:
    """Join the scaling to the ladders: down before any drain, up after the last worker that comes back."""
    downs = tuple(step for step in _downs(fleet, wish) if not step.done_in(fleet))
    ups = tuple(step for step in _ups(wish) if not step.done_in(fleet))
    if downs:
        _before_any_drain(frozenset(down.id for down in downs), steps, needs)
    # Decision 0013: a size that cannot be given back undoes no day, so it comes after every uncordon.
    back = frozenset(step.id for step in steps if isinstance(step, Uncordon)) if ups else frozenset()
    needs |= {down.id: frozenset() for down in downs} | {up.id: back for up in ups}
    return (*downs, *steps, *ups)


def _before_any_drain(downs: frozenset[StepId], steps: Iterable[Step], needs: dict[StepId, frozenset[StepId]]) -> None:
    """Make every drain wait for the scaling down.

    What many drains need is one set, and stays one object: each of 10,000 drains needs 10,000 cordons.
    """
    joined: dict[frozenset[StepId], frozenset[StepId]] = {}
    for step in steps:
        if isinstance(step, Drain):
            needed = needs[step.id]
            if needed not in joined:
                joined[needed] = needed | downs
            needs[step.id] = joined[needed]


def _downs(fleet: Fleet, wish: Wish) -> Iterator[ScaleDown]:
    # Decision 0013: owners of a size are refused and not fought.
    for key, mine in wish.workloads.items():
        if mine.asleep and key in fleet.workloads and not fleet.workloads[key].decided_by:
            yield ScaleDown(key, wish.name, wish.timetable)


def _ups(wish: Wish) -> Iterator[ScaleUp]:
    return (ScaleUp(key, wish.timetable) for key, mine in wish.workloads.items() if not mine.asleep)


def missing_workloads(fleet: Fleet, wish: Wish) -> Iterator[Remark]:
    """Yield a remark for each workload that is written out by name and does not exist."""
    for key in wish.workloads.keys() - fleet.workloads.keys():
        near = nearest(key, fleet.workloads) or "."
        yield Remark("", f"{key} is to be scaled to zero, but is not there{near}")


def must_be_seen(fleet: Fleet, shift: Shift) -> None:
    """Refuse if the shift scales workloads that Kubernetes does not show us.

    Their pods would be drained against their budgets instead.
    """
    kinds = (kind for kind in OWNS_PODS if any(fnmatchcase(kind, choice.kind) for choice in shift.scale))
    if denied := [f"{kind}s" for kind in kinds if f"{kind}s" in fleet.unseen]:
        raise RefusedError(
            f"{shift.name} scales workloads, but Kubernetes does not show us {' and '.join(denied)}.",
            hint="Allow us to list, watch and patch them, or take scale out of the timetable.\nNothing was changed.",
        )
