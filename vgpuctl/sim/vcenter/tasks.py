"""Tasks: one at a time for each VM, queued, running, done, and forgotten ten minutes later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.vcenter import refusals
from vgpuctl.sim.vcenter.records import Operation, PoweredOnMany, Task, TaskState, Vm

REMEMBERED_S = 600.0
HANGS = "hangs"
Fate = refusals.Refusal | str | None
"""How a task is made to end: with a refusal, never (it hangs at 95 %), or as its work has it."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a task does to its VM; `begin` and `finish` may raise a Refusal, which then ends the task."""

    vm: Vm
    operation: Operation
    duration_s: float
    begin: Callable[[], None]
    finish: Callable[[], None]


class Tasks:
    def __init__(self, clock: Clock, changed: Callable[[Task | Vm], None]) -> None:
        self._clock = clock
        self._changed = changed
        self._last_number = 0
        self.tasks: dict[str, Task] = {}
        self._fates: dict[str, Fate] = {}

    def start(self, work: Work) -> Task:
        """Queued now, begun when the clock next moves: the caller has its answer before anything happens."""
        vm = work.vm
        if vm.running_task:
            raise refusals.busy(vm.running_task)
        task = self._new(work.operation, vm.moid, vm.name)
        vm.running_task = task
        vm.recent_tasks.append(task)
        self._changed(task)
        self._changed(vm)
        self._clock.after(0, partial(self._begin, task, work))
        return task

    def doom(self, moid: str, fate: Fate) -> None:
        """Decide how a task that runs will end."""
        self._fates[moid] = fate

    def record_done(self, operation: Operation, entity: tuple[str, str], result: PoweredOnMany) -> Task:
        task = self._new(operation, *entity)
        task.result = result
        self._end(task, None)
        return task

    def _new(self, operation: Operation, entity_moid: str, entity_name: str) -> Task:
        self._last_number += 1
        task = Task(f"task-{self._last_number}", operation, entity_moid, entity_name, queued=self._clock.utc())
        self.tasks[task.moid] = task
        return task

    def _begin(self, task: Task, work: Work) -> None:
        task.state = TaskState.RUNNING
        task.started = self._clock.utc()
        task.progress = 0
        fate = self._fates.get(task.moid)
        try:
            if isinstance(fate, refusals.Refusal):
                raise fate
            work.begin()
        except refusals.Refusal as refusal:
            self._end(task, refusal, work.vm)
            return
        self._changed(task)
        self._clock.after(work.duration_s / 2, partial(self._halfway, task))
        self._clock.after(work.duration_s, partial(self._finish, task, work))

    def _halfway(self, task: Task) -> None:
        task.progress = 50
        self._changed(task)

    def _finish(self, task: Task, work: Work) -> None:
        if self._fates.pop(task.moid, None) == HANGS:
            self._hang(task)
            return
        refused: refusals.Refusal | None = None
        try:
            work.finish()
        except refusals.Refusal as refusal:
            refused = refusal
        self._end(task, refused, work.vm)

    def _hang(self, task: Task) -> None:
        task.progress = 95
        self._changed(task)

    def _end(self, task: Task, refused: refusals.Refusal | None, vm: Vm | None = None) -> None:
        task.state = TaskState.ERROR if refused else TaskState.SUCCESS
        task.error = refused
        task.progress = None
        task.started = task.started or self._clock.utc()
        task.completed = self._clock.utc()
        if vm:
            vm.running_task = None
            self._changed(vm)
        self._changed(task)
        self._clock.after(REMEMBERED_S, partial(self._forget, task, vm))

    def _forget(self, task: Task, vm: Vm | None) -> None:
        del self.tasks[task.moid]
        if vm:
            vm.recent_tasks.remove(task)
            self._changed(vm)
        self._changed(task)
