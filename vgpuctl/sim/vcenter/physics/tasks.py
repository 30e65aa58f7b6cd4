"""Tasks: one at a time for each object, a limited number for each host; forgotten ten minutes after their end."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from vgpuctl.sim.clock import Clock, do_nothing
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.vcenter.physics import refusals
from vgpuctl.sim.vcenter.physics.records import Host, Operation, Task, TaskState, Vm
from vgpuctl.sim.vcenter.physics.task_progress import ALMOST_DONE, Progress, SharedThroughput

#: vSphere API: `recentTask` has the tasks that completed within the past 10 minutes.
RETENTION_S = 600.0
#: vSphere: a task may hang at 95 %, so clients need a deadline for each.
HANGS = "hangs"
Outcome = refusals.Refusal | str | None
"""How a task is made to end: with a refusal, never (it hangs at 95 %), or normally (None)."""


def _never() -> bool:
    return False


def _require_connected(entity: Vm | Host) -> None:
    # vSphere: a VM's host carries the work out. Which fault a host that does not answer causes is inferred.
    host = entity if isinstance(entity, Host) else entity.host
    if not host.connected:
        raise refusals.not_connected()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a task does. `begin` and `finish` may raise a Refusal, which ends the task.

    `waits`: while it returns True the task makes no progress. `undo`: releases what a task took that ends half-way.
    `shared`: the throughput that it shares with other tasks.
    """

    entity: Vm | Host
    operation: Operation
    duration_s: float
    begin: Callable[[], None]
    finish: Callable[[], None]
    undo: Callable[[], None] = do_nothing
    waits: Callable[[], bool] = _never
    shared: SharedThroughput | None = None


@dataclass(eq=False, slots=True)
class TaskRun:
    """A queued or running task. Its queue is that of the host where it began: DRS may move the VM meanwhile."""

    task: Task
    work: Work
    queue: str
    progress: Progress | None = None
    outcome: Outcome = None


class Tasks:
    def __init__(self, clock: Clock, durations: Durations, changed: Callable[[Task | Vm | Host], None]) -> None:
        self._clock = clock
        self._durations = durations
        self._changed = changed
        self._last_number = 0
        self._user = ""
        self._runs: dict[str, TaskRun] = {}
        self._queues: dict[str, deque[TaskRun]] = defaultdict(deque)
        self._running: Counter[str] = Counter()
        self.tasks: dict[str, Task] = {}

    def start(self, work: Work) -> Task:
        """Queue a task. It begins when the clock next moves, so the caller has the reply before anything happens."""
        entity = work.entity
        # vSphere: a second task on an object that is busy is refused with TaskInProgress.
        if entity.running_task:
            raise refusals.busy(entity.running_task)
        task = self._new(work.operation, entity)
        entity.running_task = task
        entity.recent_tasks.append(task)
        self._changed(task)
        self._changed(entity)
        # A host that enters maintenance mode waits for its VMs' tasks, so it must not take the place of one.
        queue = f"{entity.moid} itself" if isinstance(entity, Host) else entity.host.moid
        run = self._runs[task.moid] = TaskRun(task, work, queue)
        self._queues[queue].append(run)
        self._clock.after(0, partial(self._begin_next, queue))
        return task

    @contextmanager
    def acting_as(self, user: str) -> Iterator[None]:
        """Tasks that start within this context belong to this user."""
        self._user = user
        try:
            yield
        finally:
            self._user = ""

    def set_outcome(self, moid: str, outcome: Outcome) -> None:
        """Decide how a running task will end."""
        if run := self._runs.get(moid):
            run.outcome = outcome
            self._update_hold(run)

    def release_hung(self) -> None:
        """Let every hanging task go on."""
        for run in tuple(self._runs.values()):
            if run.outcome == HANGS:
                self.set_outcome(run.task.moid, None)

    def cancel(self, task: Task) -> None:
        # vSphere API: CancelTask answers InvalidState for a task that has ended.
        # For one that cannot be cancelled it answers NotSupported.
        if task.done:
            raise refusals.wrong_state()
        if not task.cancelable:
            raise refusals.not_cancelable()
        task.cancelled = True
        self.fail(task, refusals.canceled())

    def fail(self, task: Task, refusal: refusals.Refusal) -> None:
        """End a task half-way and release what it took."""
        run = self._runs[task.moid]
        if run.progress:
            run.work.undo()
        self._end_run(run, refusal)

    def recheck(self, entity: Vm | Host) -> None:
        """Check again whether the object's task still has to wait."""
        if entity.running_task:
            self._update_hold(self._runs[entity.running_task.moid])

    def _new(self, operation: Operation, entity: Vm | Host) -> Task:
        self._last_number += 1
        moid, now = f"task-{self._last_number}", self._clock.utc()
        task = Task(moid, operation, entity.moid, entity.name, queued=now, user=self._user)
        self.tasks[task.moid] = task
        return task

    def _begin_next(self, name: str) -> None:
        queue = self._queues[name]
        # vCenter runs few tasks of one host at a time. That they are eight is inferred.
        while queue and self._running[name] < max(1, self._durations.tasks_per_host):
            self._running[name] += 1
            self._begin(queue.popleft())

    def _begin(self, run: TaskRun) -> None:
        task, work = run.task, run.work
        task.state = TaskState.RUNNING
        task.started = self._clock.utc()
        task.progress = 0
        try:
            _require_connected(work.entity)
            work.begin()
        except refusals.Refusal as refusal:
            self._end_run(run, refusal)
            return
        run.progress = Progress(self._clock, work.duration_s, partial(self._on_mark, run), partial(self._finish, run))
        if work.shared:
            work.shared.join(run.progress)
        self._update_hold(run)
        self._changed(task)

    def _on_mark(self, run: TaskRun) -> None:
        assert run.progress
        run.task.progress = run.progress.percent
        self._update_hold(run)
        self._changed(run.task)

    def _update_hold(self, run: TaskRun) -> None:
        if not run.progress:
            return
        hangs = run.outcome == HANGS and run.progress.percent == ALMOST_DONE
        held = run.work.waits() or hangs
        if held != run.progress.held:
            run.progress.hold(held)
            # A resume that waits for an answer reads nothing, so the others have its share.
            if run.work.shared:
                run.work.shared.divide()

    def _finish(self, run: TaskRun) -> None:
        try:
            if isinstance(run.outcome, refusals.Refusal):
                raise run.outcome
            run.work.finish()
        except refusals.Refusal as refusal:
            self.fail(run.task, refusal)
        else:
            self._end_run(run, None)

    def _end_run(self, run: TaskRun, refused: refusals.Refusal | None) -> None:
        if run.progress:
            run.progress.stop()
            if run.work.shared:
                run.work.shared.leave(run.progress)
        if run.task.state is TaskState.QUEUED:
            self._queues[run.queue].remove(run)
        else:
            self._running[run.queue] -= 1
            self._clock.after(0, partial(self._begin_next, run.queue))
        del self._runs[run.task.moid]
        self._end(run.task, run.work.entity, refused)

    def _end(self, task: Task, entity: Vm | Host, refused: refusals.Refusal | None) -> None:
        task.state = TaskState.ERROR if refused else TaskState.SUCCESS
        # Measured: collecting these frames took a fifth of the time of tests with many refusals.
        task.error = refused and refused.with_traceback(None)  # a traceback would keep its frames alive
        task.progress = None
        task.started = task.started or self._clock.utc()
        task.completed = self._clock.utc()
        entity.running_task = None
        self._changed(entity)
        self._changed(task)
        self._clock.after(RETENTION_S, partial(self._forget, task, entity))

    def _forget(self, task: Task, entity: Vm | Host) -> None:
        del self.tasks[task.moid]
        entity.recent_tasks.remove(task)
        self._changed(entity)
        self._changed(task)
