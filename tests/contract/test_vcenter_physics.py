"""The simulated vCenter's physics: in virtual time, without HTTP."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, Inventory, story
from vgpuctl.sim.vcenter.estate import Estate
from vgpuctl.sim.vcenter.records import Changes, Power, Task, TaskState, Vm
from vgpuctl.sim.vcenter.refusals import Refusal

QUARTER, WHOLE = "grid_v100-4q", "grid_v100-16q"


@dataclass
class RecordingGuests:
    """Guests that are up at once, and write down what they were told."""

    told: list[str] = field(default_factory=list)
    up: set[str] = field(default_factory=set)
    going_down: dict[str, Callable[[], None]] = field(default_factory=dict)

    def boot(self, vm: str, gpus: int) -> None:
        self.told.append(f"boot {vm} {gpus}")
        self.up.add(vm)

    def freeze(self, vm: str) -> None:
        self.told.append(f"freeze {vm}")

    def thaw(self, vm: str) -> None:
        self.told.append(f"thaw {vm}")

    def halt(self, vm: str) -> None:
        self.told.append(f"halt {vm}")
        self.up.discard(vm)

    def shut_down(self, vm: str, then: Callable[[], None]) -> None:
        self.going_down[vm] = then

    def running(self, vm: str) -> bool:
        return vm in self.up


class World:
    def __init__(self, inventory: Inventory | None = None) -> None:
        self.clock = Clock(datetime(2026, 1, 5, tzinfo=UTC))
        self.guests = RecordingGuests()
        self.durations = Durations(suspend_s=3.0, power_on_s=4.0, reconfigure_s=0.5)
        self.estate = Estate(self.clock, inventory or story(), self.durations, self.guests)

    def vm(self, name: str) -> Vm:
        return self.estate.vms[name]

    def run(self, task: Task) -> Task:
        """Let time pass until the task is done."""
        while not task.done:
            due = self.clock.next_due_s()
            assert due is not None, "the task waits for nothing"
            self.clock.advance_to(due)
        return task

    def prepare(self, vgpu: str, *names: str) -> None:
        for name in names:
            done = self.run(self.estate.reconfigure(self.vm(name), Changes(added=((0, vgpu),), memory_locked=True)))
            assert done.state is TaskState.SUCCESS, done.error

    def on(self, name: str) -> Task:
        return self.run(self.estate.power_on(self.vm(name)))

    def off(self, name: str) -> Task:
        return self.run(self.estate.power_off(self.vm(name)))

    def suspend(self, name: str) -> Task:
        return self.run(self.estate.suspend(self.vm(name)))


@pytest.fixture
def world() -> World:
    return World()


def kind(task: Task) -> str | None:
    return task.error.kind if task.error else None


def test_a_card_is_fixed_to_one_size_until_all_its_vms_are_off_or_suspended(world: World) -> None:
    world.prepare(QUARTER, "worker-1", "worker-2")
    world.prepare(WHOLE, "worker-5")
    assert kind(world.on("worker-1")) is None
    assert kind(world.on("worker-2")) is None
    assert kind(world.on("worker-5")) == "InsufficientGraphicsResourcesFault"
    assert kind(world.suspend("worker-1")) is None
    assert kind(world.on("worker-5")) == "InsufficientGraphicsResourcesFault"
    assert kind(world.off("worker-2")) is None
    assert kind(world.on("worker-5")) is None
    assert kind(world.on("worker-1")) == "InsufficientGraphicsResourcesFault"


def test_a_card_holds_no_more_than_it_offers(world: World) -> None:
    names = ["worker-1", "worker-2", "worker-3", "worker-4", "worker-5"]
    world.prepare(QUARTER, *names)
    assert [kind(world.on(name)) for name in names] == [None] * 4 + ["InsufficientGraphicsResourcesFault"]


def test_room_is_promised_once_when_two_power_ons_run_side_by_side(world: World) -> None:
    world.prepare(WHOLE, "worker-1", "worker-2")
    first, second = (world.estate.power_on(world.vm(name)) for name in ("worker-1", "worker-2"))
    world.clock.advance_to(world.clock.now_s + 100)
    assert (kind(first), kind(second)) == (None, "InsufficientGraphicsResourcesFault")


@pytest.mark.parametrize(("policy", "cards"), [("performance", [1, 1]), ("consolidation", [2, 0])])
def test_the_policy_of_the_host_chooses_the_card(policy: str, cards: list[int]) -> None:
    world = World(story(cards=2))
    world.estate.hosts["esx-1"].policy = policy
    world.prepare(QUARTER, "worker-1", "worker-2")
    world.on("worker-1")
    world.on("worker-2")
    assert [len(card.seats) for card in world.estate.hosts["esx-1"].cards] == cards


def test_a_vm_with_two_vgpus_gets_both_or_none() -> None:
    world = World(story(cards=2))
    world.prepare(WHOLE, "worker-1", "worker-1", "worker-2")
    world.on("worker-2")
    assert kind(world.on("worker-1")) == "InsufficientGraphicsResourcesFault"
    assert not world.vm("worker-1").cards
    world.off("worker-2")
    assert kind(world.on("worker-1")) is None
    assert len(world.vm("worker-1").cards) == 2


@pytest.mark.parametrize("state", [Power.ON, Power.SUSPENDED])
def test_devices_change_only_while_off_and_the_reservation_at_any_time(world: World, state: Power) -> None:
    world.prepare(QUARTER, "worker-1")
    world.on("worker-1")
    if state is Power.SUSPENDED:
        world.suspend("worker-1")
    vm = world.vm("worker-1")
    key = next(iter(vm.vgpus))
    for changes in (
        Changes(added=((0, QUARTER),)),
        Changes(removed=((0, key),)),
        Changes(replaced=((0, key, WHOLE),)),
    ):
        assert kind(world.run(world.estate.reconfigure(vm, changes))) == "InvalidPowerState"
    assert kind(world.run(world.estate.reconfigure(vm, Changes(memory_locked=False)))) is None
    assert (list(vm.vgpus.values()), vm.memory_locked) == ([QUARTER], False)


def test_a_vgpu_is_replaced_in_one_reconfiguration(world: World) -> None:
    world.prepare(QUARTER, "worker-1")
    vm = world.vm("worker-1")
    key = next(iter(vm.vgpus))
    task = world.run(world.estate.reconfigure(vm, Changes(removed=((0, key),), added=((1, WHOLE),))))
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
    vm = world.vm("worker-1")
    assert kind(world.run(world.estate.reconfigure(vm, changes))) == fault
    assert (vm.vgpus, vm.memory_locked, vm.revision) == ({}, False, 1)


def test_all_memory_must_be_reserved_where_there_is_a_vgpu(world: World) -> None:
    world.run(world.estate.reconfigure(world.vm("worker-1"), Changes(added=((0, QUARTER),))))
    refused = world.on("worker-1")
    assert kind(refused) == "GenericVmConfigFault"
    assert refused.error and "memsize(16384)" in refused.error.message
    assert kind(world.on("worker-2")) is None


def test_the_wrong_power_state_fails_in_the_task(world: World) -> None:
    assert kind(world.off("worker-1")) == "InvalidPowerState"
    assert kind(world.suspend("worker-1")) == "InvalidPowerState"
    world.on("worker-1")
    refused = world.on("worker-1")
    assert refused.error and refused.error.details == {"existingState": "poweredOn", "requestedState": "poweredOn"}


def test_one_task_at_a_time(world: World) -> None:
    running = world.estate.power_on(world.vm("worker-1"))
    for again in (world.estate.suspend, world.estate.power_on, world.estate.power_off, world.estate.shut_down_guest):
        with pytest.raises(Refusal) as refused:
            again(world.vm("worker-1"))
        assert (refused.value.kind, refused.value.details) == ("TaskInProgress", {"task": running})


def test_a_task_is_queued_runs_its_time_and_is_forgotten_after_ten_minutes(world: World) -> None:
    task = world.estate.power_on(world.vm("worker-1"))
    vm = world.vm("worker-1")
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


def test_the_guests_are_told_of_each_change(world: World) -> None:
    world.prepare(QUARTER, "worker-1")
    world.on("worker-1")
    world.suspend("worker-1")
    world.on("worker-1")
    world.off("worker-1")
    assert world.guests.told == ["boot worker-1 1", "freeze worker-1", "thaw worker-1", "halt worker-1"]


def test_a_suspended_vm_can_be_powered_off_and_then_boots_cold(world: World) -> None:
    world.on("worker-1")
    world.suspend("worker-1")
    assert kind(world.off("worker-1")) is None
    world.on("worker-1")
    assert world.guests.told[-2:] == ["halt worker-1", "boot worker-1 0"]


def test_a_guest_shuts_itself_down_where_its_tools_run(world: World) -> None:
    world.prepare(QUARTER, "worker-1")
    vm = world.vm("worker-1")
    with pytest.raises(Refusal, match="Powered off"):
        world.estate.shut_down_guest(vm)
    world.on("worker-1")
    world.guests.up.clear()
    with pytest.raises(Refusal) as refused:
        world.estate.shut_down_guest(vm)
    assert refused.value.kind == "ToolsUnavailable"
    world.guests.up.add("worker-1")
    world.estate.shut_down_guest(vm)
    assert vm.power is Power.ON
    world.guests.going_down["worker-1"]()
    assert (vm.power, vm.cards) == (Power.OFF, [])


def test_a_guest_that_goes_down_during_its_suspend_is_off_and_the_suspend_fails(world: World) -> None:
    world.on("worker-1")
    world.estate.shut_down_guest(world.vm("worker-1"))
    task = world.estate.suspend(world.vm("worker-1"))
    world.clock.advance_to(world.clock.now_s + 1)
    world.guests.going_down["worker-1"]()
    assert kind(world.run(task)) == "InvalidPowerState"
    assert world.vm("worker-1").power is Power.OFF


def test_many_are_powered_on_by_one_request(world: World) -> None:
    world.estate.power_on(world.vm("worker-1"))
    task = world.estate.power_on_many([world.vm("worker-1"), world.vm("worker-2")])
    assert task.result
    assert [vm.name for vm, _ in task.result.attempted] == ["worker-2"]
    assert [(vm.name, refusal.kind) for vm, refusal in task.result.refused] == [("worker-1", "TaskInProgress")]


def test_subscribers_hear_of_each_object_that_changes_until_they_leave(world: World) -> None:
    world.prepare(QUARTER, "worker-1")
    heard: list[str] = []
    leave = world.estate.subscribe(lambda changed: heard.append(changed.moid))
    task = world.on("worker-1")
    assert {world.vm("worker-1").moid, "host-1", task.moid} == set(heard)
    leave()
    heard.clear()
    world.suspend("worker-1")
    assert heard == []


# An independent reckoning: its own words for its own small truth, nothing borrowed from the estate.

SIZES = {QUARTER: 4, WHOLE: 1}


class Reckoning:
    def __init__(self, names: list[str], cards: int) -> None:
        self.power = dict.fromkeys(names, "off")
        self.vgpu: dict[str, str | None] = dict.fromkeys(names)
        self.locked = dict.fromkeys(names, False)
        self.cards: list[list[str]] = [[] for _ in range(cards)]

    def on(self, name: str) -> str | None:
        if self.power[name] == "on":
            return "InvalidPowerState"
        vgpu = self.vgpu[name]
        if vgpu:
            if not self.locked[name]:
                return "GenericVmConfigFault"
            fitting = [c for c in self.cards if len(c) < SIZES[vgpu] and all(self.vgpu[n] == vgpu for n in c)]
            if not fitting:
                return "InsufficientGraphicsResourcesFault"
            sorted(fitting, key=len)[0].append(name)
        self.power[name] = "on"
        return None

    def down(self, name: str, to: str) -> str | None:
        if self.power[name] == "off" or (to == "suspended" and self.power[name] != "on"):
            return "InvalidPowerState"
        self.power[name] = to
        self.cards = [[n for n in card if n != name] for card in self.cards]
        return None

    def give(self, name: str, vgpu: str | None) -> str | None:
        if vgpu == self.vgpu[name]:
            return None
        if self.power[name] != "off":
            return "InvalidPowerState"
        self.vgpu[name] = vgpu
        return None

    def lock(self, name: str, locked: bool) -> str | None:
        self.locked[name] = locked
        return None


def act(world: World, reckoning: Reckoning, dice: random.Random, name: str) -> tuple[str | None, str | None]:
    """One random deed done to both: what the estate said, and what it should have said."""
    deed = dice.choice(["on", "on", "on", "off", "suspend", "give", "lock"])
    if deed == "on":
        return kind(world.on(name)), reckoning.on(name)
    if deed == "off":
        return kind(world.off(name)), reckoning.down(name, "off")
    if deed == "suspend":
        return kind(world.suspend(name)), reckoning.down(name, "suspended")
    vm = world.vm(name)
    if deed == "lock":
        locked = dice.random() < 0.8
        task = world.run(world.estate.reconfigure(vm, Changes(memory_locked=locked)))
        return kind(task), reckoning.lock(name, locked)
    wanted = dice.choice([None, QUARTER, QUARTER, WHOLE])
    same = wanted == next(iter(vm.vgpus.values()), None)
    removed = () if same else tuple((0, key) for key in vm.vgpus)
    added = () if same or wanted is None else ((1, wanted),)
    task = world.run(world.estate.reconfigure(vm, Changes(removed=removed, added=added)))
    return kind(task), reckoning.give(name, wanted)


def placed(world: World) -> list[list[str]]:
    by_moid = {vm.moid: name for name, vm in world.estate.vms.items()}
    return [[by_moid[moid] for moid in card.vm_moids()] for card in world.estate.hosts["esx-1"].cards]


@pytest.mark.parametrize("seed", range(25))
def test_random_deeds_end_as_reckoned(seed: int) -> None:
    dice = random.Random(seed)
    cards = dice.choice([1, 2, 3])
    world = World(story(cards=cards))
    names = [name for name in world.estate.vms if name.startswith("worker")]
    reckoning = Reckoning(names, cards)
    for turn in range(120):
        said, should_say = act(world, reckoning, dice, dice.choice(names))
        assert said == should_say, f"turn {turn}"
        assert placed(world) == reckoning.cards, f"turn {turn}"
        powers = {name: world.vm(name).power.name.lower() for name in names}
        assert powers == reckoning.power, f"turn {turn}"


@pytest.mark.parametrize("seed", range(25))
def test_deeds_side_by_side_never_overfill_a_card(seed: int) -> None:
    dice = random.Random(seed)
    world = World(story(cards=2))
    names = [name for name in world.estate.vms if name.startswith("worker")]
    for name in names:
        world.prepare(dice.choice([QUARTER, WHOLE]), name)
    for _ in range(150):
        vm = world.vm(dice.choice(names))
        estate = world.estate
        try:
            dice.choice([estate.power_on, estate.power_on, estate.power_off, estate.suspend])(vm)
        except Refusal as refusal:
            assert refusal.kind == "TaskInProgress"
        world.clock.advance_to(world.clock.now_s + dice.choice([0.0, 0.3, 2.0]))
        for card in estate.hosts["esx-1"].cards:
            types = {seat.vgpu for seat in card.seats}
            assert len(types) <= 1
            assert all(len(card.seats) <= SIZES[vgpu] for vgpu in types)
        for name in names:
            vm = world.vm(name)
            busy_with_on = vm.running_task is not None and vm.running_task.operation.value == "PowerOnVM_Task"
            assert busy_with_on or bool(vm.cards) == (vm.power is Power.ON)
