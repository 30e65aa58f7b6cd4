"""The methods of a VM."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.methods.config_spec import changes_of
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles


@handles("PowerOnVM_Task")
def power_on(call: Call, host: Any) -> Any:
    """Refuse a host other than the VM's own. Choosing a host is not simulated."""
    if host is not None and host._moId != call.subject.host.moid:
        raise faults.not_supported("a power-on on another host")
    return refs.of(call.center.estate.power_on(call.subject))


@handles("PowerOffVM_Task")
def power_off(call: Call) -> Any:
    return refs.of(call.center.estate.power_off(call.subject))


@handles("SuspendVM_Task")
def suspend(call: Call) -> Any:
    return refs.of(call.center.estate.suspend(call.subject))


@handles("ReconfigVM_Task")
def reconfigure(call: Call, spec: Any) -> Any:
    return refs.of(call.center.estate.reconfigure(call.subject, changes_of(spec)))


@handles("ShutdownGuest")
def shut_down_guest(call: Call) -> None:
    call.center.estate.shut_down_guest(call.subject)


@handles("AnswerVM")
def answer_vm(call: Call, question_id: str, choice: str) -> None:
    vm = call.subject
    # vSphere API: `questionId` is the id of the question that waits.
    if not vm.question or vm.question.id != question_id:
        raise faults.invalid_argument("questionId")
    call.center.estate.answer(vm, choice)
