"""What the product asks of vCenter, and what becomes of the simulated VM."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from tests.support.runs import Errand
from vgpuctl.model.errors import PassingError, RequestFailedError, TryAgainError, VgpuctlError
from vgpuctl.model.requests import AttachVgpus, PowerOffVm, PowerOnVm, ShutDownGuest, SuspendVm
from vgpuctl.planning.wishes import Provisioning
from vgpuctl.sim.faults import VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, default_inventory
from vgpuctl.sim.vcenter.physics.records import Power, Vm

DAY = {"worker-1", "worker-2", "worker-3", "worker-4"}
OLD, NEW = ("grid_v100-4q",), ("grid_v100-8q",)
#: By name and id: the first runs by day, the second is off.
AWAKE, OFF = ("worker-1", "vm-2"), ("worker-5", "vm-6")
Ask = type[SuspendVm] | type[PowerOnVm] | type[PowerOffVm] | type[ShutDownGuest]


@pytest.fixture
def day() -> Rehearsal:
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations())
    rehearsal.wait(60)
    return rehearsal


def vm_of(day: Rehearsal, named: tuple[str, str]) -> Vm:
    vm = day.world.estate.vms[named[0]]
    assert vm.moid == named[1]
    return vm


def attach(day: Rehearsal, vgpus: tuple[str, ...], mmio_gib: int = 0) -> None:
    day.carry(Errand(AttachVgpus(worker=OFF[0], vm=OFF[1], vgpus=vgpus, mmio_gib=mmio_gib)))
    day.wait(10)


@pytest.mark.parametrize(
    ("asked", "power", "is_task"),
    [
        ([SuspendVm], Power.SUSPENDED, True),
        ([PowerOffVm], Power.OFF, True),
        ([ShutDownGuest], Power.OFF, False),
        ([SuspendVm, PowerOnVm], Power.ON, True),
        ([PowerOffVm, PowerOnVm], Power.ON, True),
    ],
)
def test_a_vm_comes_into_the_state_that_is_asked_for(
    day: Rehearsal, asked: list[Ask], power: Power, is_task: bool
) -> None:
    for kind in asked:
        task = day.carry(Errand(kind(worker=AWAKE[0], vm=AWAKE[1]))).task
        assert (task in day.world.estate.tasks) is is_task
        day.wait(20)
    assert vm_of(day, AWAKE).power is power


def test_new_vgpus_come_instead_of_the_old_with_all_memory_reserved_and_room_for_their_cards(day: Rehearsal) -> None:
    vm = vm_of(day, OFF)
    vm.memory_locked = False
    attach(day, NEW * 2, mmio_gib=128)
    assert (list(vm.vgpus.values()), vm.memory_locked) == ([*NEW, *NEW], True)
    assert vm.extra_config == {"pciPassthru.use64bitMMIO": "TRUE", "pciPassthru.64bitMMIOSizeGB": "128"}


def test_vgpus_that_are_right_already_are_left_where_they_are(day: Rehearsal) -> None:
    attach(day, (*OLD, *NEW))
    vm = vm_of(day, OFF)
    before, vm.memory_locked = dict(vm.vgpus), False
    attach(day, (*NEW, *OLD))
    assert (vm.vgpus, vm.memory_locked) == (before, True)


def test_the_last_vgpu_goes_and_the_memory_is_left_as_it_is(day: Rehearsal) -> None:
    vm = vm_of(day, OFF)
    vm.memory_locked = False
    attach(day, ())
    assert (vm.vgpus, vm.memory_locked) == ({}, False)


def test_a_guest_without_tools_is_powered_off_only_where_that_is_allowed(day: Rehearsal) -> None:
    vm = vm_of(day, AWAKE)
    day.world.estate.set_tools(vm, False)
    asked = ShutDownGuest(worker=AWAKE[0], vm=AWAKE[1])
    with pytest.raises(RequestFailedError, match="VMware Tools do not answer"):
        day.carry(Errand(asked))
    assert vm.running_task is None
    day.world.calls.faults.add(Rule(server=VCENTER, method="PowerOffVM_Task", effect=Effect(how=How.CUT), times=1))
    firm = Errand(replace(asked, or_power_off=True))
    with pytest.raises(PassingError, match="does not answer"):
        day.carry(firm)
    assert day.carry(firm).task in day.world.estate.tasks
    day.wait(10)
    assert vm.power is Power.OFF


@pytest.mark.parametrize(
    ("effect", "kind", "said", "carried_out"),
    [
        (Effect(how=How.CUT), PassingError, "vCenter sim:443 does not answer: the connection was cut.", False),
        (Effect(how=How.LOSE_REPLY), PassingError, "vCenter sim:443 does not answer: the reply was lost.", True),
        (Effect(how=How.END_SESSIONS), PassingError, "the session with vCenter sim:443 has ended", False),
        (Effect(how=How.FAIL, what="TaskInProgress"), TryAgainError, "another task of vCenter runs on the VM", False),
        (Effect(how=How.FAIL, what="NoDiskSpace"), RequestFailedError, "has not enough free space", False),
    ],
    ids=lambda value: value.how.value if isinstance(value, Effect) else "",
)
def test_what_goes_wrong_with_a_call_is_one_of_our_errors(
    day: Rehearsal, effect: Effect, kind: type[VgpuctlError], said: str, carried_out: bool
) -> None:
    day.world.calls.faults.add(Rule(server=VCENTER, effect=effect, times=1))
    with pytest.raises(kind) as refused:
        day.carry(Errand(SuspendVm(worker=AWAKE[0], vm=AWAKE[1])))
    assert said in refused.value.message
    assert (vm_of(day, AWAKE).running_task is not None) is carried_out


def test_sessions_that_end_meanwhile_cost_a_call_and_no_more(day: Rehearsal) -> None:
    rule = Rule(server=VCENTER, method="SuspendVM_Task", effect=Effect(how=How.END_SESSIONS), times=1)
    day.world.calls.faults.add(rule)
    assert day.switch("night").finished
    assert (day.awake(), day.broken) == ({"worker-5"}, [])
    assert day.world.calls.as_dict()["vcenter"]["SuspendVM_Task"] == len(DAY) + 1


def test_workers_that_never_carried_a_vgpu_are_given_theirs_and_wake_by_day_and_by_night() -> None:
    new = Rehearsal.of(default_inventory(), Durations())
    new.wait(60)
    assert new.provision(Provisioning(max_unavailable=4)).finished
    for shift, awake in (("day", DAY), ("night", {"worker-5"}), ("day", DAY)):
        assert new.switch(shift).finished
        assert (new.awake(), new.broken) == (awake, [])
