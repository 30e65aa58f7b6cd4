"""The simulated vCenter's physics: in virtual time, without HTTP."""

from __future__ import annotations

import pytest

from tests.support.fleets import QUARTER, WHOLE
from tests.support.physics import change, kind, off, on, prepare, suspend
from vgpuctl.sim.inventory import Durations, default_inventory
from vgpuctl.sim.kube.machines import nodes
from vgpuctl.sim.vcenter.physics.records import Changes, Power, TaskState
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.world import World

#: By then a kubelet has told of itself, whatever happened to its machine.
SETTLED_S = 15.0


@pytest.fixture
def world() -> World:
    return World()


def test_a_card_is_fixed_to_one_size_until_all_its_vms_are_off_or_suspended(world: World) -> None:
    prepare(world, QUARTER, "worker-1", "worker-2")
    prepare(world, WHOLE, "worker-5")
    assert kind(on(world, "worker-1")) is None
    assert kind(on(world, "worker-2")) is None
    assert kind(on(world, "worker-5")) == "InsufficientGraphicsResourcesFault"
    assert kind(suspend(world, "worker-1")) is None
    assert kind(on(world, "worker-5")) == "InsufficientGraphicsResourcesFault"
    assert kind(off(world, "worker-2")) is None
    assert kind(on(world, "worker-5")) is None
    assert kind(on(world, "worker-1")) == "InsufficientGraphicsResourcesFault"


def test_a_card_holds_no_more_than_it_offers(world: World) -> None:
    names = ["worker-1", "worker-2", "worker-3", "worker-4", "worker-5"]
    prepare(world, QUARTER, *names)
    assert [kind(on(world, name)) for name in names] == [None] * 4 + ["InsufficientGraphicsResourcesFault"]


def test_room_is_promised_once_when_two_power_ons_run_side_by_side(world: World) -> None:
    prepare(world, WHOLE, "worker-1", "worker-2")
    first, second = (world.estate.power_on(world.estate.vms[name]) for name in ("worker-1", "worker-2"))
    world.wait(100)
    assert (kind(first), kind(second)) == (None, "InsufficientGraphicsResourcesFault")


@pytest.mark.parametrize(("policy", "cards"), [("performance", [1, 1]), ("consolidation", [2, 0])])
def test_the_policy_of_the_host_chooses_the_card(policy: str, cards: list[int]) -> None:
    world = World(default_inventory(cards=2))
    world.estate.hosts["esx-1"].policy = policy
    prepare(world, QUARTER, "worker-1", "worker-2")
    on(world, "worker-1")
    on(world, "worker-2")
    assert [len(card.seats) for card in world.estate.hosts["esx-1"].cards] == cards


def test_a_vm_with_two_vgpus_gets_both_or_none() -> None:
    world = World(default_inventory(cards=2))
    prepare(world, WHOLE, "worker-1", "worker-1", "worker-2")
    on(world, "worker-2")
    assert kind(on(world, "worker-1")) == "InsufficientGraphicsResourcesFault"
    assert not world.estate.vms["worker-1"].cards
    off(world, "worker-2")
    assert kind(on(world, "worker-1")) is None
    assert len(world.estate.vms["worker-1"].cards) == 2


@pytest.mark.parametrize("state", [Power.ON, Power.SUSPENDED])
def test_devices_change_only_while_off_and_the_reservation_at_any_time(world: World, state: Power) -> None:
    prepare(world, QUARTER, "worker-1")
    on(world, "worker-1")
    if state is Power.SUSPENDED:
        suspend(world, "worker-1")
    vm = world.estate.vms["worker-1"]
    key = next(iter(vm.vgpus))
    for changes in (
        Changes(added=((0, QUARTER),)),
        Changes(removed=((0, key),)),
        Changes(replaced=((0, key, WHOLE),)),
    ):
        assert kind(change(world, vm.name, changes)) == "InvalidPowerState"
    assert kind(change(world, vm.name, Changes(memory_locked=False))) is None
    assert (list(vm.vgpus.values()), vm.memory_locked) == ([QUARTER], False)


def test_a_vgpu_is_replaced_in_one_reconfiguration(world: World) -> None:
    prepare(world, QUARTER, "worker-1")
    vm = world.estate.vms["worker-1"]
    key = next(iter(vm.vgpus))
    task = change(world, vm.name, Changes(removed=((0, key),), added=((1, WHOLE),)))
    assert kind(task) is None
    assert (list(vm.vgpus.values()), vm.revision) == ([WHOLE], 3)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (Changes(added=((0, "grid_v100-3q"),)), "InvalidDeviceBacking"),
        (Changes(removed=((0, 99),)), "DeviceNotFound"),
        (Changes(memory_locked=True, expected_revision=99), "ConcurrentAccess"),
    ],
)
def test_an_impossible_reconfiguration_changes_nothing(world: World, changes: Changes, fault: str) -> None:
    vm = world.estate.vms["worker-1"]
    assert kind(change(world, vm.name, changes)) == fault
    assert (vm.vgpus, vm.memory_locked, vm.revision) == ({}, False, 1)


def test_all_memory_must_be_reserved_where_there_is_a_vgpu(world: World) -> None:
    change(world, "worker-1", Changes(added=((0, QUARTER),)))
    refused = on(world, "worker-1")
    assert kind(refused) == "GenericVmConfigFault"
    assert refused.error and "memsize(16384)" in refused.error.message
    assert kind(on(world, "worker-2")) is None


def test_the_wrong_power_state_fails_in_the_task(world: World) -> None:
    assert kind(off(world, "worker-1")) == "InvalidPowerState"
    assert kind(suspend(world, "worker-1")) == "InvalidPowerState"
    on(world, "worker-1")
    refused = on(world, "worker-1")
    assert refused.error and refused.error.details == {"existingState": "poweredOn", "requestedState": "poweredOn"}


def test_one_task_at_a_time(world: World) -> None:
    running = world.estate.power_on(world.estate.vms["worker-1"])
    for again in (world.estate.suspend, world.estate.power_on, world.estate.power_off, world.estate.shut_down_guest):
        with pytest.raises(Refusal) as refused:
            again(world.estate.vms["worker-1"])
        assert (refused.value.kind, refused.value.details) == ("TaskInProgress", {"task": running})


def test_a_task_is_queued_runs_its_time_and_is_forgotten_after_ten_minutes() -> None:
    world = World(durations=Durations(power_on_s=4.0))
    task = world.estate.power_on(world.estate.vms["worker-1"])
    vm = world.estate.vms["worker-1"]
    assert (task.state, task.progress, vm.power) == (TaskState.QUEUED, None, Power.OFF)
    world.clock.advance_to(3.9)
    assert (task.state, task.progress, vm.power) == (TaskState.RUNNING, 95, Power.OFF)
    world.clock.advance_to(4.0)
    assert (task.state, task.progress, vm.power) == (TaskState.SUCCESS, None, Power.ON)
    assert task.completed and task.started and (task.completed - task.started).total_seconds() == 4.0
    world.clock.advance_to(603.9)
    assert vm.recent_tasks == [task]
    world.clock.advance_to(604.0)
    assert (vm.recent_tasks, world.estate.tasks) == ([], {})


def test_the_machine_inside_follows_the_power_of_its_vm(world: World) -> None:
    machine = world.kubernetes.kubelets["worker-1"]
    prepare(world, QUARTER, "worker-1")
    on(world, "worker-1")
    assert not machine.guest_up, "it boots"
    world.wait(SETTLED_S)
    first_boot, gpus = posted(world, "worker-1")
    assert (machine.running, gpus) == (True, "1")
    suspend(world, "worker-1")
    assert (machine.guest_up, machine.frozen) == (True, True)
    on(world, "worker-1")
    assert machine.running, "it goes on without a boot"
    world.wait(SETTLED_S)
    assert posted(world, "worker-1") == (first_boot, "1")
    off(world, "worker-1")
    assert not machine.guest_up


def test_a_suspended_vm_can_be_powered_off_and_then_boots_cold(world: World) -> None:
    on(world, "worker-1")
    world.wait(SETTLED_S)
    first_boot, _ = posted(world, "worker-1")
    suspend(world, "worker-1")
    assert kind(off(world, "worker-1")) is None
    assert not world.kubernetes.kubelets["worker-1"].guest_up
    on(world, "worker-1")
    assert not world.kubernetes.running("worker-1"), "it boots"
    world.wait(SETTLED_S)
    second_boot, gpus = posted(world, "worker-1")
    assert world.kubernetes.running("worker-1")
    assert second_boot not in ("", first_boot)
    assert gpus is None, "it has no vGPU"


def posted(world: World, name: str) -> tuple[str, str | None]:
    """The boot and the number of GPUs that a kubelet told of last."""
    node = world.kubernetes.store.get("nodes", "", name)
    assert node
    return node["status"]["nodeInfo"]["bootID"], node["status"]["capacity"].get(nodes.GPU)


def test_a_guest_shuts_itself_down_where_its_tools_run(world: World) -> None:
    prepare(world, QUARTER, "worker-1")
    vm = world.estate.vms["worker-1"]
    with pytest.raises(Refusal, match="Powered off"):
        world.estate.shut_down_guest(vm)
    on(world, "worker-1")
    with pytest.raises(Refusal) as refused:
        world.estate.shut_down_guest(vm)
    assert refused.value.kind == "ToolsUnavailable", "it is booting"
    world.wait(world.durations.guest_boot_s)
    world.estate.shut_down_guest(vm)
    assert (vm.power, vm.shutting_down) == (Power.ON, True)
    world.wait(world.durations.guest_shutdown_s)
    assert (vm.power, vm.cards, vm.shutting_down) == (Power.OFF, [], False)


def test_a_guest_that_goes_down_during_its_suspend_is_off_and_the_suspend_fails(world: World) -> None:
    world.durations.guest_shutdown_s, world.durations.suspend_s = 1.0, 3.0
    on(world, "worker-1")
    world.wait(world.durations.guest_boot_s)
    world.estate.shut_down_guest(world.estate.vms["worker-1"])
    task = world.estate.suspend(world.estate.vms["worker-1"])
    world.wait(1)
    assert kind(world.wait_for(task)) == "InvalidPowerState"
    assert world.estate.vms["worker-1"].power is Power.OFF


def test_subscribers_hear_of_each_object_that_changes_until_they_leave(world: World) -> None:
    prepare(world, QUARTER, "worker-1")
    heard: list[str] = []
    leave = world.estate.subscribe(lambda changed: heard.append(changed.moid))
    task = on(world, "worker-1")
    assert {world.estate.vms["worker-1"].moid, "host-1", task.moid} == set(heard)
    leave()
    heard.clear()
    suspend(world, "worker-1")
    assert heard == []
