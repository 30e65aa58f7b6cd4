"""The simulated vCenter's physics driven in virtual time, without HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, Inventory, story
from vgpuctl.sim.vcenter.estate import Estate
from vgpuctl.sim.vcenter.records import Changes, Task, TaskState, Vm


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
    def __init__(self, inventory: Inventory | None = None, durations: Durations | None = None) -> None:
        self.clock = Clock(datetime(2026, 1, 5, tzinfo=UTC))
        self.guests = RecordingGuests()
        self.durations = durations or Durations(suspend_s=3.0, power_on_s=4.0, reconfigure_s=0.5)
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


def kind(task: Task) -> str | None:
    return task.error.kind if task.error else None
