"""Tasks: one at a time for each object, some at a time for each host, and forgotten ten minutes after their end."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from vgpuctl.sim.clock import Clock, do_nothing
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.vcenter.physics import refusals
from vgpuctl.sim.vcenter.physics.records import ALMOST_DONE, Host, Operation, PoweredOnMany, Task, TaskState, Vm
from vgpuctl.sim.vcenter.physics.task_progress import Course, Lane

REMEMBERED_S = 600.0
HANGS = "hangs"
Fate = refusals.Refusal | str | None
"""How a task is made to end: with a refusal, never (it hangs at 95 %), or as its work has it."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a task does to its object; `begin` and `finish` may raise a Refusal, which then ends the task.

    `waits`: while it is true the task stands still. `undo`: what a task that ends half-way gives back.
    `lane`: shares its throughput with the others there.
    """

    entity: Vm | Host
    operation: Operation
    duration_s: float
    begin: Callable[[], None]
    finish: Callable[[], None]
    undo: Callable[[], None] = do_nothing
    waits: Callable[[], bool] = _never
    lane: Lane | None = None


@dataclass(eq=False, slots=True)
class Job:
    """A task that is queued or running. Its host is the one where it began: DRS may move the VM meanwhile."""

    task: Task
    work: Work
    host_moid: str
    course: Course | None = None
    fate: Fate = None


class Tasks:
    def __init__(self, clock: Clock, durations: Durations, changed: Callable[[Task | Vm | Host], None]) -> None:
        self._clock = clock
        self._durations = durations
        self._changed = changed
        self._last_number = 0
        self._jobs: dict[str, Job] = {}
        self._queues: dict[str, deque[Job]] = defaultdict(deque)
        self._running: Counter[str] = Counter()
        self.tasks: dict[str, Task] = {}

    def start(self, work: Work) -> Task:
        """Queued now, begun when the clock next moves: the caller has its answer before anything happens."""
        entity = work.entity
        if entity.running_task:
            raise refusals.busy(entity.running_task)
        task = self._new(work.operation, entity.moid, entity.name)
        entity.running_task = task
        entity.recent_tasks.append(task)
        self._changed(task)
        self._changed(entity)
        host = entity if isinstance(entity, Host) else entity.host
        job = self._jobs[task.moid] = Job(task, work, host.moid)
        self._queues[host.moid].append(job)
        self._clock.after(0, partial(self._begin_next, host.moid))
        return task

    def doom(self, moid: str, fate: Fate) -> None:
        """Decide how a task that runs will end."""
        if job := self._jobs.get(moid):
            job.fate = fate
            self._hold_or_go_on(job)

    def let_go(self) -> None:
        """Whatever hangs goes on."""
        for job in tuple(self._jobs.values()):
            if job.fate == HANGS:
                self.doom(job.task.moid, None)

    def record_done(self, operation: Operation, entity: tuple[str, str], result: PoweredOnMany) -> Task:
        task = self._new(operation, *entity)
        task.result = result
        self._end(task, None)
        return task

    def cancel(self, task: Task) -> None:
        if task.done:
            raise refusals.wrong_state()
        if not task.cancelable:
            raise refusals.not_cancelable()
        task.cancelled = True
        self.fail(task, refusals.canceled())

    def fail(self, task: Task, refusal: refusals.Refusal) -> None:
        """End it half-way; what it has taken is given back."""
        job = self._jobs[task.moid]
        if job.course:
            job.work.undo()
        self._end_job(job, refusal)

    def look_again(self, entity: Vm | Host) -> None:
        """What its task waits for may have changed."""
        if entity.running_task:
            self._hold_or_go_on(self._jobs[entity.running_task.moid])

    def _new(self, operation: Operation, entity_moid: str, entity_name: str) -> Task:
        self._last_number += 1
        task = Task(f"task-{self._last_number}", operation, entity_moid, entity_name, queued=self._clock.utc())
        self.tasks[task.moid] = task
        return task

    def _begin_next(self, host_moid: str) -> None:
        queue = self._queues[host_moid]
        while queue and self._running[host_moid] < max(1, self._durations.tasks_per_host):
            self._running[host_moid] += 1
            self._begin(queue.popleft())

    def _begin(self, job: Job) -> None:
        task, work = job.task, job.work
        task.state = TaskState.RUNNING
        task.started = self._clock.utc()
        task.progress = 0
        try:
            work.begin()
        except refusals.Refusal as refusal:
            self._end_job(job, refusal)
            return
        job.course = Course(self._clock, work.duration_s, partial(self._reached, job), partial(self._finish, job))
        if work.lane:
            work.lane.join(job.course)
        self._hold_or_go_on(job)
        self._changed(task)

    def _reached(self, job: Job) -> None:
        assert job.course
        job.task.progress = job.course.percent
        self._hold_or_go_on(job)
        self._changed(job.task)

    def _hold_or_go_on(self, job: Job) -> None:
        if job.course:
            hangs = job.fate == HANGS and job.course.percent == ALMOST_DONE
            job.course.hold(job.work.waits() or hangs)

    def _finish(self, job: Job) -> None:
        try:
            if isinstance(job.fate, refusals.Refusal):
                raise job.fate
            job.work.finish()
        except refusals.Refusal as refusal:
            self.fail(job.task, refusal)
        else:
            self._end_job(job, None)

    def _end_job(self, job: Job, refused: refusals.Refusal | None) -> None:
        if job.course:
            job.course.stop()
            if job.work.lane:
                job.work.lane.leave(job.course)
        if job.task.state is TaskState.QUEUED:
            self._queues[job.host_moid].remove(job)
        else:
            self._running[job.host_moid] -= 1
            self._clock.after(0, partial(self._begin_next, job.host_moid))
        del self._jobs[job.task.moid]
        self._end(job.task, refused, job.work.entity)

    def _end(self, task: Task, refused: refusals.Refusal | None, entity: Vm | Host | None = None) -> None:
        task.state = TaskState.ERROR if refused else TaskState.SUCCESS
        task.error = refused and refused.with_traceback(None)  # else the frames that raised it live as long as it
        task.progress = None
        task.started = task.started or self._clock.utc()
        task.completed = self._clock.utc()
        if entity:
            entity.running_task = None
            self._changed(entity)
        self._changed(task)
        self._clock.after(REMEMBERED_S, partial(self._forget, task, entity))

    def _forget(self, task: Task, entity: Vm | Host | None) -> None:
        del self.tasks[task.moid]
        if entity:
            entity.recent_tasks.remove(task)
            self._changed(entity)
        self._changed(task)
