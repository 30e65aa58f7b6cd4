"""The physics of the simulated vCenter: hosts, cards, VMs and tasks in virtual time. No HTTP, no vendor's types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.guests import Guests
from vgpuctl.sim.inventory import Durations, Inventory, VmSpec
from vgpuctl.sim.vcenter import refusals
from vgpuctl.sim.vcenter.cards import Card, release, seat
from vgpuctl.sim.vcenter.records import Changes, Host, Operation, Power, PoweredOnMany, Task, Vm
from vgpuctl.sim.vcenter.tasks import Tasks, Work

Subscriber = Callable[[Host | Vm | Task], None]
DATACENTER = ("datacenter-2", "dc")


class Estate:
    def __init__(self, clock: Clock, inventory: Inventory, durations: Durations, guests: Guests) -> None:
        self.clock = clock
        self.inventory = inventory
        self.durations = durations
        self.guests = guests
        self._subscribers: list[Subscriber] = []
        self.work = Tasks(clock, self._changed)
        self.hosts: dict[str, Host] = {}
        self.vms: dict[str, Vm] = {}
        for number, host in enumerate(inventory.hosts, start=1):
            self.hosts[host.name] = Host(f"host-{number}", host, [Card(card) for card in host.cards], host.policy)
        for number, vm in enumerate(inventory.vms, start=1):
            self._add(f"vm-{number}", vm)

    @property
    def tasks(self) -> dict[str, Task]:
        """By managed object id: those that run, and those that ended in the last ten minutes."""
        return self.work.tasks

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Tell `callback` each object that changes; the answer is a function that ends it."""
        self._subscribers.append(callback)
        return partial(self._subscribers.remove, callback)

    # Each of these starts a task, or raises a Refusal at once where the VM is busy.

    def power_on(self, vm: Vm) -> Task:
        """Also resumes."""
        return self.work.start(
            Work(
                vm,
                Operation.POWER_ON,
                self.durations.power_on_s,
                begin=partial(self._take_seats, vm),
                finish=partial(self._now_on, vm),
            )
        )

    def power_off(self, vm: Vm) -> Task:
        """A hard power-off has no duration of its own: about as quick as a change of settings."""
        return self.work.start(
            Work(
                vm,
                Operation.POWER_OFF,
                self.durations.reconfigure_s,
                begin=partial(_require, vm, Power.OFF, Power.ON, Power.SUSPENDED),
                finish=partial(self._now_off, vm),
            )
        )

    def suspend(self, vm: Vm) -> Task:
        return self.work.start(
            Work(
                vm,
                Operation.SUSPEND,
                self.durations.suspend_s,
                begin=partial(_require, vm, Power.ON, Power.ON),
                finish=partial(self._now_suspended, vm),
            )
        )

    def reconfigure(self, vm: Vm, changes: Changes) -> Task:
        return self.work.start(
            Work(
                vm,
                Operation.RECONFIGURE,
                self.durations.reconfigure_s,
                begin=partial(_check, vm, changes),
                finish=partial(self._now_changed, vm, changes),
            )
        )

    def power_on_many(self, vms: Iterable[Vm]) -> Task:
        """One task that starts each VM's own and is done at once."""
        attempted: list[tuple[Vm, Task]] = []
        refused: list[tuple[Vm, refusals.Refusal]] = []
        for vm in vms:
            try:
                attempted.append((vm, self.power_on(vm)))
            except refusals.Refusal as refusal:
                refused.append((vm, refusal))
        result = PoweredOnMany(tuple(attempted), tuple(refused))
        return self.work.record_done(Operation.POWER_ON_MANY, DATACENTER, result)

    def shut_down_guest(self, vm: Vm) -> None:
        """No task: the guest is asked, and the VM is off when the guest is down."""
        if vm.running_task:
            raise refusals.busy(vm.running_task)
        _require(vm, Power.OFF, Power.ON)
        if not self.guests.running(vm.name):
            raise refusals.tools_missing()
        self.guests.shut_down(vm.name, then=partial(self._guest_is_down, vm))

    def _add(self, moid: str, spec: VmSpec) -> None:
        host = self.hosts[spec.host]
        power = Power.ON if spec.powered_on else Power.OFF
        vm = Vm(moid, spec, host, power, spec.memory_mib, spec.cpus, changed=self.clock.utc())
        vm.booted = self.clock.utc() if spec.powered_on else None
        self.vms[vm.name] = vm
        host.vms.append(vm)

    def _changed(self, changed: Host | Vm | Task) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber(changed)

    def _take_seats(self, vm: Vm) -> None:
        """The card is chosen when the power-on begins, so that two of them cannot be promised the same room."""
        _require(vm, Power.ON, Power.OFF, Power.SUSPENDED)
        if not vm.vgpus:
            return
        if not vm.memory_locked:
            raise refusals.memory_not_reserved(vm)
        if not seat(vm.moid, vm.vgpus.values(), vm.host.cards, vm.host.policy):
            raise refusals.no_graphics()
        self._changed(vm.host)

    def _leave_seats(self, vm: Vm) -> None:
        if vm.cards:
            release(vm.moid, vm.host.cards)
            self._changed(vm.host)

    def _now_on(self, vm: Vm) -> None:
        resumed = vm.power is Power.SUSPENDED
        vm.power = Power.ON
        if resumed:
            self.guests.thaw(vm.name)
        else:
            vm.booted = self.clock.utc()
            self.guests.boot(vm.name, len(vm.vgpus))

    def _now_suspended(self, vm: Vm) -> None:
        _require(vm, Power.ON, Power.ON)  # its guest may have shut itself down meanwhile
        vm.power = Power.SUSPENDED
        self._leave_seats(vm)
        self.guests.freeze(vm.name)

    def _now_off(self, vm: Vm) -> None:
        if vm.power is Power.OFF:
            return
        vm.power = Power.OFF
        vm.booted = None
        self._leave_seats(vm)
        self.guests.halt(vm.name)

    def _guest_is_down(self, vm: Vm) -> None:
        if vm.power is Power.ON:
            self._now_off(vm)
            self._changed(vm)

    def _now_changed(self, vm: Vm, changes: Changes) -> None:
        for _, key in changes.removed:
            del vm.vgpus[key]
        for _, key, vgpu in changes.replaced:
            vm.vgpus[key] = vgpu
        for _, vgpu in changes.added:
            vm.vgpus[vm.fresh_key()] = vgpu
        kept = vm.extra_config | dict(changes.extra_config)
        vm.extra_config = {key: value for key, value in kept.items() if value}  # an empty value takes a key away
        for name in ("memory_locked", "memory_mib", "cpus", "annotation"):
            if getattr(changes, name) is not None:
                setattr(vm, name, getattr(changes, name))
        vm.revision += 1
        vm.changed = self.clock.utc()


def _require(vm: Vm, wanted: Power, *allowed: Power) -> None:
    if vm.power not in allowed:
        raise refusals.wrong_power(vm, wanted)


def _check(vm: Vm, changes: Changes) -> None:
    if changes.expected_revision not in (None, vm.revision):
        raise refusals.changed_meanwhile()
    if changes.needs_off:
        _require(vm, Power.OFF, Power.OFF)
    for index, key in changes.touched_keys():
        if key not in vm.vgpus:
            raise refusals.no_such_device(index)
    for index, vgpu in changes.wanted_vgpus():
        if not vm.host.offers(vgpu):
            raise refusals.unknown_vgpu(index)
