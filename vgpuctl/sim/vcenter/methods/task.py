"""The TaskManager: cancels tasks and reads past ones."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.history_collector import HistoryCollector
from vgpuctl.sim.vcenter.inventory.objects import MANAGERS, InventoryObject, PropertyTable
from vgpuctl.sim.vcenter.inventory.task_properties import info
from vgpuctl.sim.vcenter.methods.event import MOST_COLLECTORS, add_collector, in_time
from vgpuctl.sim.vcenter.physics.records import Operation, Task
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim

TASKS = MANAGERS["TaskManager"]
COLLECTOR = PropertyTable()


@handles("CancelTask")
def cancel_task(call: Call) -> None:
    call.center.estate.work.cancel(call.subject)


@handles("CreateCollectorForTasks")
def create_collector_for_tasks(call: Call, wanted: Any) -> Any:
    entity = wanted.entity.entity if wanted.entity else None
    if entity is not None and not call.center.find(entity, call.session):
        raise faults.not_found(entity)
    history = call.center.history
    collector = HistoryCollector(wanted, lambda: history.tasks, lambda task, spec: _matches(call, task, spec), _number)
    ref = vim.TaskHistoryCollector(call.required_session.next_moid("TaskHistoryCollector"))
    return add_collector(call, InventoryObject(ref, COLLECTOR, collector))


@handles("ReadNextTasks")
def read_next_tasks(call: Call, count: int) -> Any:
    return _infos(call, call.subject.read_next(count))


@handles("ReadPreviousTasks")
def read_previous_tasks(call: Call, count: int) -> Any:
    return _infos(call, call.subject.read_previous(count))


@COLLECTOR("filter")
def _filter(_: Any, collector: HistoryCollector) -> Any:
    return collector.filter


@COLLECTOR("latestPage")
def _latest_page(context: Any, collector: HistoryCollector) -> Any:
    return [info(context, task) for task in collector.latest_page()]


@TASKS("recentTask")
def _recent_task(context: Any, _: Any) -> list[Any]:
    # vSphere API: the tasks that completed in the past 10 minutes, run or are queued. A limit of 200 is not simulated.
    return refs.of_all(context.estate.tasks.values())


@TASKS("maxCollector")
def _most(_: Any, __: Any) -> int:
    return MOST_COLLECTORS


@TASKS("description")
def _description(_: Any, __: Any) -> Any:
    kinds = [operation.value for operation in Operation]
    labels = [vim.ElementDescription(key=k.description_id, label=k.label, summary=k.label) for k in kinds]
    states = [vim.ElementDescription(key=s, label=s, summary=s) for s in ("queued", "running", "success", "error")]
    reason = vim.TypeDescription(key=vim.TaskReasonUser, label="user", summary="Started by a user")
    return vim.TaskDescription(methodInfo=labels, state=states, reason=[reason])


def _infos(call: Call, tasks: list[Task]) -> list[Any]:
    context = call.center.context(call.session)
    return [info(context, task) for task in tasks]


def _number(task: Task) -> int:
    return int(task.moid.rpartition("-")[2])


def _matches(call: Call, task: Task, wanted: Any) -> bool:
    user = call.center.history.user_of(task)
    return (
        (not wanted.state or task.state.value in wanted.state)
        and (not wanted.time or in_time(_time_of(task, wanted.time.timeType), wanted.time))
        and (not wanted.userName or user in wanted.userName.userList)
        and (not wanted.entity or _concerns(task, wanted.entity))
    )


def _time_of(task: Task, kind: str) -> Any:
    # vSphere API: `TaskFilterSpecTimeOption` says which of a task's three times counts.
    times = {"queuedTime": task.queued, "startedTime": task.started, "completedTime": task.completed}
    return times[kind] or task.queued


def _concerns(task: Task, wanted: Any) -> bool:
    holds_it = wanted.entity in (refs.ROOT, refs.DC, refs.VM_FOLDER) and wanted.recursion != "self"
    return holds_it or bool(wanted.entity._moId == task.entity_moid and wanted.recursion != "children")
