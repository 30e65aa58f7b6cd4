"""Power, devices and their refusals: what our vCenter and vcsim both say of a VM's life."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from tests.support.fleets import QUARTER, WHOLE
from tests.support.peers.processes import until
from tests.support.peers.vcenters import Client, Vcenter, detach
from tests.support.vcenter import attach

ON, OFF, SUSPENDED = "poweredOn", "poweredOff", "suspended"
DO: dict[str, Callable[[Any], Any]] = {
    ON: lambda vm: vm.PowerOn(),
    OFF: lambda vm: vm.PowerOff(),
    SUSPENDED: lambda vm: vm.Suspend(),
}


def brought(client: Client, vm: Any, state: str) -> None:
    """By lawful steps only."""
    for step in {OFF: [], ON: [ON], SUSPENDED: [ON, SUSPENDED]}[state]:
        client.ok(DO[step](vm))
    assert client.power(vm) == state


def test_a_task_goes_from_running_to_success(client: Client) -> None:
    vm = client.vm("worker-1")
    task = vm.PowerOn()
    assert client.read(task, "info.state") in ("queued", "running")
    assert client.power(vm) == OFF
    info = client.done(task)
    assert (info.state, info.entity, info.descriptionId) == ("success", vm, "VirtualMachine.powerOn")
    assert info.startTime
    assert info.completeTime >= info.startTime
    assert client.power(vm) == ON
    assert task in client.read(vm, "recentTask")


@pytest.mark.parametrize(("state", "step"), [(OFF, ON), (ON, SUSPENDED), (SUSPENDED, ON), (ON, OFF), (SUSPENDED, OFF)])
def test_lawful_steps(client: Client, state: str, step: str) -> None:
    vm = client.vm("worker-1")
    brought(client, vm, state)
    client.ok(DO[step](vm))
    assert client.power(vm) == step


@pytest.mark.parametrize(
    ("state", "step", "needs"), [(ON, ON, ON), (OFF, OFF, OFF), (OFF, SUSPENDED, ON), (SUSPENDED, SUSPENDED, None)]
)
def test_steps_that_a_state_forbids(client: Client, state: str, step: str, needs: str | None) -> None:
    """`requestedState` is what the step needs; vcsim names the step itself where the VM is suspended already."""
    vm = client.vm("worker-1")
    brought(client, vm, state)
    fault = client.fault(DO[step](vm))
    assert isinstance(fault, vim.fault.InvalidPowerState)
    assert fault.existingState == state
    assert fault.requestedState == needs or needs is None


def test_a_vgpu_is_attached_and_read_back(client: Client) -> None:
    vm = client.vm("worker-1")
    before = client.read(vm, "config.changeVersion")
    client.ok(vm.Reconfigure(attach(QUARTER)))
    (device,) = client.vgpus(vm)
    assert (device.backing.vgpu, type(device.backing).__name__) == (
        QUARTER,
        "vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo",
    )
    assert device.key > 0
    assert device.deviceInfo.label
    assert client.read(vm, "config.memoryReservationLockedToMax") is True
    assert client.read(vm, f"config.hardware.device[{device.key}].backing.vgpu") == QUARTER
    assert client.read(vm, "config.changeVersion") != before


def test_a_vgpu_is_replaced_in_one_change(client: Client) -> None:
    vm = client.vm("worker-1")
    client.ok(vm.Reconfigure(attach(QUARTER)))
    spec = attach(WHOLE)
    spec.deviceChange = [*detach(client.vgpus(vm)).deviceChange, *spec.deviceChange]
    client.ok(vm.Reconfigure(spec))
    assert [device.backing.vgpu for device in client.vgpus(vm)] == [WHOLE]
    client.ok(vm.Reconfigure(detach(client.vgpus(vm))))
    assert client.vgpus(vm) == []


def test_a_device_that_is_not_there_cannot_be_removed(client: Client, vcenter: Vcenter) -> None:
    vcenter.holds_not("vcsim", "it removes what it finds, and finds nothing wrong with nothing")
    vm = client.vm("worker-1")
    client.ok(vm.Reconfigure(attach(QUARTER)))
    (device,) = client.vgpus(vm)
    device.key = 99999
    fault = client.fault(vm.Reconfigure(detach([device])))
    assert isinstance(fault, vim.fault.InvalidDeviceSpec)


def test_a_change_for_an_older_version_is_refused(client: Client, vcenter: Vcenter) -> None:
    vcenter.holds_not("vcsim", "it does not look at the changeVersion that it is sent")
    vm = client.vm("worker-1")
    spec = attach(QUARTER)
    spec.changeVersion = "an older one"
    fault = client.fault(vm.Reconfigure(spec))
    assert isinstance(fault, vim.fault.ConcurrentAccess)


def test_extra_settings_are_kept(client: Client) -> None:
    vm = client.vm("worker-1")
    option = vim.option.OptionValue(key="pciPassthru.use64bitMMIO", value="TRUE")
    client.ok(vm.Reconfigure(vim.vm.ConfigSpec(extraConfig=[option])))
    kept = {one.key: one.value for one in client.read(vm, "config.extraConfig") or ()}
    assert kept["pciPassthru.use64bitMMIO"] == "TRUE"
    option.value = ""
    client.ok(vm.Reconfigure(vim.vm.ConfigSpec(extraConfig=[option])))
    kept = {one.key: one.value for one in client.read(vm, "config.extraConfig") or ()}
    assert "pciPassthru.use64bitMMIO" not in kept


def test_the_card_tells_who_sits_on_it(client: Client) -> None:
    vm = client.vm("worker-1")
    (host,) = client.view(vim.HostSystem).view
    client.ok(vm.Reconfigure(attach(QUARTER)))

    def seated(vms: list[Any]) -> bool:
        return [one for card in client.read(host, "config.graphicsInfo") for one in card.vm] == vms

    for step, sits in ((ON, [vm]), (SUSPENDED, []), (ON, [vm]), (OFF, [])):
        client.ok(DO[step](vm))
        until(partial(seated, sits), what=f"the card's VMs after {step}")


def test_a_card_that_is_full_refuses(client: Client, vcenter: Vcenter) -> None:
    vcenter.holds_not("vcsim", "it enforces no capacity: any number of vGPUs starts")
    day, night = client.vm("worker-1"), client.vm("worker-5")
    client.ok(day.Reconfigure(attach(QUARTER)), night.Reconfigure(attach(WHOLE)))
    client.ok(day.PowerOn())
    assert isinstance(client.fault(night.PowerOn()), vim.fault.InsufficientGraphicsResourcesFault)
    client.ok(day.Suspend())
    client.ok(night.PowerOn())


def test_devices_change_only_while_the_vm_is_off(client: Client, vcenter: Vcenter) -> None:
    vcenter.holds_not("vcsim", "it changes a vGPU in any power state")
    vm = client.vm("worker-1")
    client.ok(vm.PowerOn())
    assert isinstance(client.fault(vm.Reconfigure(attach(QUARTER))), vim.fault.InvalidPowerState)


def test_two_tasks_on_one_vm(client: Client, vcenter: Vcenter) -> None:
    vcenter.holds_not("vcsim", "it knows no TaskInProgress: the second task waits for the VM's lock")
    vm = client.vm("worker-1")
    first = vm.PowerOn()
    with pytest.raises(vim.fault.TaskInProgress) as busy:
        vm.PowerOn()
    assert busy.value.task == first
    client.ok(first)


def test_what_is_not_offered_is_refused(client: Client) -> None:
    with pytest.raises((vmodl.fault.NotSupported, vmodl.fault.MethodNotFound)):
        client.vm("worker-1").StartRecording("name")
