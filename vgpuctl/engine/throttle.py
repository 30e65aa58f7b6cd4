"""Takes turns: if only so many VMs of a host or datastore may be suspended at once, the others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from vgpuctl.engine.run_state import Attempts
from vgpuctl.model.conduct import Conduct
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.plan import Step
from vgpuctl.model.step_id import StepId
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.planning.steps import Suspend


def queued(
    fleet: Fleet, conduct: Conduct, due: Iterable[Step], attempts: Mapping[StepId, Attempts]
) -> dict[StepId, Wait]:
    """Return the steps that must wait, and for what.

    A suspend that has begun keeps its turn; the others go by the plan.
    """
    # vSphere: several suspends at once share the throughput of the datastore.
    most = {"host": conduct.suspends_a_host, "datastore": conduct.suspends_a_datastore}
    if not any(most.values()):
        return {}
    writers = [worker for worker in fleet.workers.values() if _writes(worker, attempts)]
    taken = Counter(place for worker in writers for place in _places(worker))
    waiting: dict[StepId, Wait] = {}
    for step in due:
        if not isinstance(step, Suspend) or (worker := fleet.worker(step.worker)) in writers:
            continue
        full = [(kind, name) for kind, name in _places(worker) if (limit := most[kind]) and taken[kind, name] >= limit]
        if full:
            kind, name = full[0]
            waiting[step.id] = Wait.of(Reason.TURN, taken[kind, name], most[kind], kind, name)
        else:
            taken.update(_places(worker))
    return waiting


def _writes(worker: Worker, attempts: Mapping[StepId, Attempts]) -> bool:
    """True if the worker is being suspended, by us or another program.

    A refused suspend that is retried keeps its place.
    """
    if not worker.on:
        return False
    # vSphere: another program's suspend writes to the same datastore.
    by_task = worker.busy_with is not None and worker.busy_with.kind in Suspend.tasks
    return by_task or Suspend.of(worker.name) in attempts


def _places(worker: Worker) -> tuple[tuple[str, str], ...]:
    return ("host", worker.host), ("datastore", worker.datastore)
