"""The simulated vCenter says no: each refusal as the fault that the protocol has for it."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim, vmodl

from tests.support.fleets import WHOLE
from tests.support.physics import without_nodes
from tests.support.soap import SoapClient
from tests.support.vcenter import add_vgpu, content_of, vm_named, wait_for
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate


def test_a_refusal_reaches_the_client_as_the_fault_it_is(estate: Estate, client: Any) -> None:
    workers = [vm_named(client, f"worker-{number}") for number in range(1, 4)]
    for vm in workers:
        assert add_vgpu(vm, WHOLE).state == "success"
    assert [wait_for(vm.PowerOn()).state for vm in workers[:2]] == ["success"] * 2
    refused = wait_for(workers[2].PowerOn())
    assert "graphics resource" in refused.error.msg
    assert isinstance(refused.error, vim.fault.InsufficientGraphicsResourcesFault)
    wrong = wait_for(workers[0].PowerOn()).error
    assert (type(wrong), wrong.existingState) == (vim.fault.InvalidPowerState, "poweredOn")
    backing = add_vgpu(workers[2], "grid_v100-3q").error
    assert isinstance(backing, vim.fault.InvalidDeviceBacking)
    estate.freeze()
    running = workers[0].Suspend()
    with pytest.raises(vim.fault.TaskInProgress) as busy:
        workers[0].Suspend()
    assert busy.value.task == running


def test_what_is_not_done_is_refused_and_never_swallowed(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    for attempt in (
        content_of(client).rootFolder.Destroy_Task,
        lambda: vm.ReconfigVM_Task(vim.vm.ConfigSpec(name="other")),
        lambda: content_of(client).alarmManager.GetAlarm(None),
    ):
        with pytest.raises(vmodl.fault.NotSupported):
            attempt()
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vim.VirtualMachine("vm-999", vm._stub).PowerOn(None)
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vim.HostSystem("vm-1", vm._stub).QueryMemoryOverhead(1, None, 1)


BROKEN = {
    "not XML": b"hello",
    "nothing": b"",
    "no SOAP": b"<a/>",
    "cut off": b'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>',
    "no object": b"<Envelope><Body><CurrentTime/></Body></Envelope>",
    "unknown type": b'<Envelope><Body><CurrentTime><_this type="Nonsense">x</_this></CurrentTime></Body></Envelope>',
    "unknown argument": b'<Envelope><Body><CurrentTime><_this type="ServiceInstance">ServiceInstance</_this>'
    b"<more>1</more></CurrentTime></Body></Envelope>",
}


def stranger() -> SoapClient:
    return SoapClient(World(without_nodes(default_inventory())))


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_broken_request_is_answered_with_a_fault(body: bytes) -> None:
    answer = stranger().post(body, {"cookie": "", "soapaction": ""})
    assert (answer.status, answer.fault) == (500, "InvalidRequest")
    assert b"Traceback" not in answer.body


def test_an_unknown_method_is_a_method_not_found() -> None:
    coffee = b"<Envelope><Body><MakeCoffee/></Body></Envelope>"
    answer = stranger().post(coffee, {"cookie": "", "soapaction": "urn:vim25/99.9"})
    assert (answer.status, answer.fault) == (500, "MethodNotFound")
