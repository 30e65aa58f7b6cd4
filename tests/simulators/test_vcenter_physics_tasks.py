"""Tasks over time: side by side up to a limit, with progress, with questions, cancelled or hanging."""

from __future__ import annotations

import pytest

from tests.support.fleets import WHOLE
from tests.support.physics import kind, on, prepare
from vgpuctl.sim.inventory import Durations, Inventory, VmSpec, default_inventory
from vgpuctl.sim.inventory import HostSpec as Host
from vgpuctl.sim.vcenter.physics.records import Power, Task, TaskState
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.vcenter.physics.tasks import HANGS
from vgpuctl.sim.world import World


def many(count: int, per_host: int = 8, hosts: int = 1, question: str = "", lasts_s: float = 4.0) -> World:
    vms = tuple(VmSpec(f"vm-{n}", f"esx-{n % hosts + 1}", question=question) for n in range(count))
    specs = tuple(Host(f"esx-{n}") for n in range(1, hosts + 1))
    return World(Inventory("gpu", specs, vms), Durations(power_on_s=lasts_s, tasks_per_host=per_host))


def states(tasks: list[Task]) -> list[str]:
    return [task.state.value for task in tasks]


def start_all(world: World) -> list[Task]:
    return [world.estate.power_on(vm) for vm in world.estate.vms.values()]


def test_a_host_runs_some_tasks_at_a_time_and_queues_the_others() -> None:
    world = many(5, per_host=2)
    tasks = start_all(world)
    world.clock.advance_to(1)
    assert states(tasks) == ["running", "running", "queued", "queued", "queued"]
    world.clock.advance_to(4)
    assert states(tasks) == ["success", "success", "running", "running", "queued"]
    world.clock.advance_to(12)
    assert states(tasks) == ["success"] * 5


def test_each_host_has_a_queue_of_its_own() -> None:
    world = many(4, per_host=1, hosts=2)
    tasks = start_all(world)
    world.clock.advance_to(1)
    assert states(tasks) == ["running", "running", "queued", "queued"]
    world.clock.advance_to(8)
    assert states(tasks) == ["success"] * 4


def test_a_refused_task_makes_way_at_once() -> None:
    world = many(2, per_host=1)
    wrong = world.estate.suspend(world.estate.vms["vm-0"])
    right = world.estate.power_on(world.estate.vms["vm-1"])
    world.clock.advance_to(0.1)
    assert (kind(wrong), right.state) == ("InvalidPowerState", TaskState.RUNNING)


@pytest.mark.parametrize(
    ("lasts_s", "told"),
    [
        (0.5, [0, 95, None]),
        (4.0, [0, 30, 60, 90, 95, None]),
        (60.0, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, None]),
    ],
)
def test_progress_comes_in_tens_and_once_a_second_at_most(lasts_s: float, told: list[int | None]) -> None:
    world = many(1, lasts_s=lasts_s)
    seen: list[int | None] = []
    (task,) = start_all(world)
    world.estate.subscribe(lambda record: seen.append(task.progress) if record is task else None)
    world.wait_for(task)
    assert seen == told


def test_a_cancelled_task_that_waits_its_turn_never_begins() -> None:
    world = many(2, per_host=1)
    first, second = start_all(world)
    world.clock.advance_to(1)
    world.estate.work.cancel(second)
    assert (kind(second), second.cancelled, world.estate.vms["vm-1"].running_task) == ("RequestCanceled", True, None)
    world.clock.advance_to(100)
    assert (first.state, world.estate.vms["vm-1"].power) == (TaskState.SUCCESS, Power.OFF)


def test_a_power_on_can_be_cancelled_until_it_is_almost_done_and_a_suspend_cannot() -> None:
    world = many(1)
    (task,) = start_all(world)
    world.clock.advance_to(3.7)
    assert task.cancelable
    world.clock.advance_to(3.9)
    with pytest.raises(Refusal) as late:
        world.estate.work.cancel(task)
    assert late.value.kind == "NotSupported"
    world.wait_for(task)
    with pytest.raises(Refusal) as over:
        world.estate.work.cancel(task)
    assert over.value.kind == "InvalidState"
    suspending = world.estate.suspend(world.estate.vms["vm-0"])
    world.wait(0.1)
    assert not suspending.cancelable


def test_a_task_that_hangs_stays_at_95_per_cent_until_it_is_let_go() -> None:
    world = many(1)
    (task,) = start_all(world)
    world.estate.work.set_outcome(task.moid, HANGS)
    world.clock.advance_to(1000)
    assert (task.state, task.progress) == (TaskState.RUNNING, 95)
    world.estate.work.release_hung()
    world.wait_for(task)
    assert task.state is TaskState.SUCCESS
    assert world.clock.now_s == pytest.approx(1000.2)


def test_a_world_waits_for_a_task_no_longer_than_an_hour() -> None:
    world = many(1)
    (task,) = start_all(world)
    world.estate.work.set_outcome(task.moid, HANGS)
    with pytest.raises(TimeoutError, match="PowerOnVM_Task of vm-0 does not end"):
        world.wait_for(task)
    assert not task.done


@pytest.mark.parametrize("choice", ["1", "2"])
def test_a_vm_that_asks_is_on_when_it_has_its_answer(choice: str) -> None:
    world = many(1, question="Was it moved or copied?")
    vm = world.estate.vms["vm-0"]
    (task,) = start_all(world)
    world.clock.advance_to(1000)
    assert (task.state, task.progress, vm.power) == (TaskState.RUNNING, 0, Power.OFF)
    question = vm.question
    assert question and question.text == "Was it moved or copied?"
    world.estate.answer(vm, choice)
    assert (kind(world.wait_for(task)), vm.power, vm.question) == (None, Power.ON, None)


def test_the_answer_cancel_ends_the_power_on() -> None:
    world = World(default_inventory())
    prepare(world, WHOLE, "worker-1", "worker-2")
    vm = world.estate.vms["worker-1"]
    world.estate.set_question(vm, "Was it moved or copied?")
    task = world.estate.power_on(vm)
    world.wait(1)
    assert kind(on(world, "worker-2")) == "InsufficientGraphicsResourcesFault", "who asks holds its seat"
    world.estate.answer(vm, "0")
    assert (kind(task), vm.power, vm.cards, vm.question) == ("RequestCanceled", Power.OFF, [], None)
    assert kind(on(world, "worker-2")) is None


def test_only_a_question_that_is_asked_can_be_answered_and_only_by_its_choices() -> None:
    world = many(1, question="Well?")
    vm = world.estate.vms["vm-0"]
    with pytest.raises(Refusal) as nothing_asked:
        world.estate.answer(vm, "1")
    world.estate.power_on(vm)
    world.clock.advance_to(1)
    with pytest.raises(Refusal) as no_choice:
        world.estate.answer(vm, "3")
    kinds = [(refused.value.kind, refused.value.details) for refused in (nothing_asked, no_choice)]
    assert kinds == [
        ("InvalidArgument", {"invalidProperty": "questionId"}),
        ("InvalidArgument", {"invalidProperty": "answerChoice"}),
    ]


def test_a_guest_without_tools_cannot_be_shut_down() -> None:
    world = many(1)
    vm = world.estate.vms["vm-0"]
    on(world, "vm-0")
    world.wait(world.durations.guest_boot_s)
    world.estate.set_tools(vm, False)
    with pytest.raises(Refusal) as refused:
        world.estate.shut_down_guest(vm)
    assert refused.value.kind == "ToolsUnavailable"
    world.estate.set_tools(vm, True)
    world.estate.shut_down_guest(vm)
    world.wait(world.durations.guest_shutdown_s)
    assert vm.power is Power.OFF
