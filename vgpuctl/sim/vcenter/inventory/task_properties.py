"""A task's properties: `info`, and single fields of it."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.objects import PropertyTable
from vgpuctl.sim.vcenter.physics.records import Task
from vgpuctl.sim.vcenter.wire.faults import fault_of
from vgpuctl.sim.vcenter.wire.metadata import NAMESPACE
from vgpuctl.sim.vcenter.wire.vmomi import support, vim

TASK = PropertyTable()


@TASK("info.key")
def _key(_: Any, task: Task) -> str:
    return task.moid


@TASK("info.descriptionId")
def _description(_: Any, task: Task) -> str:
    return task.operation.value.description_id


@TASK("info.entity")
def _subject(_: Any, task: Task) -> Any:
    return _entity(task)


@TASK("info.state")
def _state(_: Any, task: Task) -> str:
    return task.state.value


@TASK("info.error")
def _error(_: Any, task: Task) -> Any:
    return fault_of(task.error) if task.error else None


@TASK("info")
def info(context: Any, task: Task) -> Any:
    return vim.TaskInfo(
        key=task.moid,
        task=refs.of(task),
        name=support.GetWsdlMethod(NAMESPACE, task.operation.value.method),
        descriptionId=task.operation.value.description_id,
        entity=_entity(task),
        entityName=task.entity_name,
        state=task.state.value,
        cancelled=task.cancelled,
        cancelable=task.cancelable,
        error=fault_of(task.error) if task.error else None,
        # vSphere API: only a running task has a progress, from 0 to 100.
        progress=task.progress,
        reason=vim.TaskReasonUser(userName=task.user),
        queueTime=task.queued,
        startTime=task.started,
        completeTime=task.completed,
        eventChainId=0,
    )


def _entity(task: Task) -> Any:
    kind = vim.HostSystem if task.operation.value.of_hosts else vim.VirtualMachine
    return kind(task.entity_moid)
