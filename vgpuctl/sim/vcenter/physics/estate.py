"""The physics of the simulated vCenter: hosts, cards, VMs and tasks in virtual time. No HTTP and no vim types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vgpuctl.sim.card_models import MMIO_GB
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.errors import SimError
from vgpuctl.sim.guests import Guests
from vgpuctl.sim.inventory import DRS_DISABLED, MANUAL, Durations, Inventory, VmSpec
from vgpuctl.sim.vcenter.physics import (
    graphics_books,
    lost_hosts,
    maintenance,
    migration,
    power,
    reconfigure,
    refusals,
)
from vgpuctl.sim.vcenter.physics.cards import Card
from vgpuctl.sim.vcenter.physics.licences import LicencePool
from vgpuctl.sim.vcenter.physics.places import Places
from vgpuctl.sim.vcenter.physics.records import (
    CHOICES,
    FIRST_VGPU_KEY,
    Changes,
    Connection,
    Host,
    Operation,
    Power,
    Record,
    Software,
    Task,
    Vm,
)
from vgpuctl.sim.vcenter.physics.tasks import Tasks, Work

Subscriber = Callable[[Record], None]


class BadInventory(SimError):  # noqa: N818
    """The inventory's initial state breaks the physics."""


class Estate:
    def __init__(self, clock: Clock, inventory: Inventory, durations: Durations, guests: Guests) -> None:
        self.clock = clock
        self.inventory = inventory
        self.durations = durations
        self.guests = guests
        self._subscribers: list[Subscriber] = []
        self.work = Tasks(clock, durations, self.changed)
        self.licences = LicencePool(clock, inventory.licences)
        self.places = Places(inventory)
        self.hosts: dict[str, Host] = {}
        self.vms: dict[str, Vm] = {}
        for number, spec in enumerate(inventory.hosts, start=1):
            cards = [Card(card) for card in spec.cards]
            cluster = self.places.cluster(spec)
            host = Host(f"host-{number}", spec, cluster, cards, spec.policy, spec.in_maintenance)
            self.hosts[spec.name] = host
            cluster.hosts.append(host)
        self._last_vm_number = 0
        for vm in inventory.vms:
            self._add_initial(vm)
        for host in self.hosts.values():
            graphics_books.refresh(self, host)
            if host.spec.crashed:
                self.crash(host)

    @property
    def tasks(self) -> dict[str, Task]:
        """Running tasks, and those that ended in the last ten minutes, by managed object id."""
        return self.work.tasks

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Call `callback` with each object that changes. Returns a function that ends this."""
        self._subscribers.append(callback)
        return partial(self._subscribers.remove, callback)

    def changed(self, *records: Record) -> None:
        for record in dict.fromkeys(records):
            for subscriber in tuple(self._subscribers):
                subscriber(record)

    def hosts_for(self, vm: Vm) -> list[Host]:
        """Return where a power-on may place the VM: its own host first, others only under DRS, none that a rule
        forbids.
        """
        others = [host for host in vm.host.cluster.hosts if host is not vm.host] if self._drs_places(vm) else []
        return [host for host in (vm.host, *others) if vm.spec.must_run_on in ("", host.name)]

    def _drs_places(self, vm: Vm) -> bool:
        # vSphere API: an override (`DrsVmConfigInfo`) counts before the cluster's behaviour.
        # In manual mode DRS only recommends. That a VM then stays on its host is inferred.
        behaviour = vm.spec.drs or self.inventory.drs_behaviour
        return self.inventory.drs and behaviour not in (DRS_DISABLED, MANUAL)

    # Each of these starts a task, or raises a Refusal at once if the object is busy.

    def power_on(self, vm: Vm) -> Task:
        """Power on or resume."""
        throughput = self.durations.store_mib_per_s if vm.power is Power.SUSPENDED else None
        return self.work.start(
            Work(
                entity=vm,
                operation=Operation.POWER_ON,
                # vSphere: a resume reads back from the datastore what the suspend has written there.
                duration_s=vm.suspend_file_mib / throughput if throughput else self.durations.power_on_s,
                begin=partial(power.begin_power_on, self, vm),
                finish=partial(power.finish_power_on, self, vm),
                undo=partial(power.undo_power_on, self, vm),
                # vSphere: while `runtime.question` waits for an answer, a power-on hangs.
                waits=lambda: vm.question is not None,
                shared=vm.suspend_store.traffic if throughput else None,
            )
        )

    def power_off(self, vm: Vm) -> Task:
        """Power off hard. It takes as long as a reconfiguration: no duration of its own is simulated."""
        return self.work.start(
            Work(
                entity=vm,
                operation=Operation.POWER_OFF,
                duration_s=self.durations.reconfigure_s,
                # Measured with vcsim 0.56: a suspended VM may be powered off; one that is off is refused.
                begin=partial(power.require, vm, Power.OFF, Power.ON, Power.SUSPENDED),
                finish=partial(power.finish_power_off, self, vm),
            )
        )

    def suspend(self, vm: Vm) -> Task:
        throughput = self.durations.store_mib_per_s
        return self.work.start(
            Work(
                entity=vm,
                operation=Operation.SUSPEND,
                # vSphere: a suspend writes the VM's memory to the datastore, and all that do so share its throughput.
                duration_s=vm.memory_mib / throughput if throughput else self.durations.suspend_s,
                begin=partial(power.begin_suspend, self, vm),
                finish=partial(power.finish_suspend, self, vm),
                undo=partial(power.delete_suspend_file, self, vm),
                shared=vm.suspend_store.traffic if throughput else None,
            )
        )

    def reconfigure(self, vm: Vm, changes: Changes) -> Task:
        return self.work.start(
            Work(
                entity=vm,
                operation=Operation.RECONFIGURE,
                duration_s=self.durations.reconfigure_s,
                begin=partial(reconfigure.check, vm, changes),
                finish=partial(self.apply, vm, changes),
            )
        )

    def destroy(self, vm: Vm) -> Task:
        not_on = partial(power.require, vm, Power.OFF, Power.OFF, Power.SUSPENDED)
        return self.work.start(
            Work(
                entity=vm,
                operation=Operation.DESTROY,
                duration_s=self.durations.reconfigure_s,
                begin=not_on,
                finish=partial(self._finish_destroy, vm, not_on),
            )
        )

    def shut_down_guest(self, vm: Vm) -> None:
        """Ask the guest to shut down, without a task. The VM is off when the guest is down."""
        if not vm.host.connected:
            raise refusals.not_connected()
        if vm.running_task:
            raise refusals.busy(vm.running_task)
        power.require(vm, Power.OFF, Power.ON)
        # vSphere: ShutdownGuest needs running VMware Tools (else ToolsUnavailable).
        if not vm.tools or not self.guests.running(vm.guest):
            raise refusals.tools_missing()
        self.guests.shut_down(vm.guest, then=partial(self._guest_is_down, vm))
        # vSphere API: ShutdownGuest returns at once. `guest.guestState` says `shuttingDown` until the guest is down.
        vm.shutting_down = True
        self.changed(vm)

    def migrate(self, vm: Vm, host: Host) -> Task:
        return migration.migrate(self, vm, host)

    def enter_maintenance(self, host: Host, timeout_s: float, *, evacuate: bool = False) -> Task:
        return maintenance.enter(self, host, timeout_s, evacuate=evacuate)

    def leave_maintenance(self, host: Host) -> Task:
        return maintenance.leave(self, host)

    # What people and faults do to the world, at once and without a task.

    def set_question(self, vm: Vm, text: str) -> None:
        """Let the VM ask this at each later power-on and wait for the answer; an empty text ends that."""
        vm.power_on_question = text

    def answer(self, vm: Vm, choice: str) -> None:
        """Answer by the choice's number. The first choice cancels the power-on; with any other it goes on
        (inferred).
        """
        if not vm.question or not vm.running_task:
            raise refusals.no_such_answer("questionId")
        if choice not in map(str, range(len(CHOICES))):
            raise refusals.no_such_answer("answerChoice")
        # vSphere: the question is, for example, whether the VM was moved or copied.
        if choice == "0":
            self.work.fail(vm.running_task, refusals.canceled())
            return
        vm.question = None
        self.work.recheck(vm)
        self.changed(vm)

    def set_tools(self, vm: Vm, running: bool) -> None:
        vm.tools = running
        self.changed(vm)

    def set_maintenance(self, host: Host, wanted: bool) -> None:
        maintenance.set_mode(self, host, wanted)

    def patch(self, host: Host, software: Software) -> None:
        maintenance.patch(self, host, software)

    def crash(self, host: Host) -> None:
        lost_hosts.crash(self, host)

    def disconnect(self, host: Host) -> None:
        lost_hosts.lose(self, host, Connection.DISCONNECTED)

    def stop_responding(self, host: Host) -> None:
        lost_hosts.lose(self, host, Connection.NOT_RESPONDING)

    def connect(self, host: Host) -> None:
        lost_hosts.connect(self, host)

    # Creating and removing VMs.

    def add(self, spec: VmSpec) -> Vm:
        """Add a VM that is off, with its devices; refused if its host does not offer them."""
        vm = self._new_vm(spec)
        if vm.name in vm.folder.vms:
            raise BadInventory(f"{vm.name} is there twice in the folder {vm.folder.name}")
        vm.memory_locked, vm.tools, vm.power_on_question = spec.memory_locked, spec.tools, spec.question
        reconfigure.check(vm, Changes(added=tuple(enumerate(spec.vgpus))))
        vm.vgpus = dict(enumerate(spec.vgpus, start=FIRST_VGPU_KEY))
        vm.extra_config = _settings_for(spec.vgpus) | dict(spec.extra_config)
        self.vms[vm.guest] = vm
        vm.host.vms.append(vm)
        vm.folder.vms[vm.name] = vm
        self.changed(vm)
        return vm

    def _new_vm(self, spec: VmSpec) -> Vm:
        self._last_vm_number += 1
        host = self.hosts[spec.host]
        datacenter = host.cluster.datacenter
        store = self.places.store(datacenter, spec.datastore or host.spec.datastore)
        return Vm(
            moid=f"vm-{self._last_vm_number}",
            spec=spec,
            host=host,
            folder=self.places.folder(datacenter, spec.folder),
            store=store,
            suspend_store=self.places.store(datacenter, spec.suspend_datastore) if spec.suspend_datastore else store,
            power=Power.OFF,
            memory_mib=spec.memory_mib,
            cpus=spec.cpus,
            changed=self.clock.utc(),
        )

    def remove(self, vm: Vm) -> None:
        del self.vms[vm.guest], vm.folder.vms[vm.name]
        vm.host.vms.remove(vm)
        self.guests.remove(vm.guest)
        self.changed(vm)

    def _add_initial(self, spec: VmSpec) -> None:
        """Add a VM. One that runs from the beginning gets its resources at once."""
        try:
            vm = self.add(spec)
            if spec.powered_on:
                power.reserve_and_place(vm, [vm.host])
                vm.power, vm.booted = Power.ON, self.clock.utc()
                self.licences.lease(vm)
            elif spec.suspended:
                power.begin_asleep(self, vm)
        except refusals.Refusal as refusal:
            raise BadInventory(f"{spec.name} on {spec.host}: {refusal}") from refusal

    def _finish_destroy(self, vm: Vm, not_on: Callable[[], None]) -> None:
        not_on()
        power.finish_power_off(self, vm)
        self.remove(vm)

    def _guest_is_down(self, vm: Vm) -> None:
        if vm.power is Power.ON:
            self.licences.give_back(vm)
            power.finish_power_off(self, vm)
            self.changed(vm)

    def apply(self, vm: Vm, changes: Changes) -> None:
        reconfigure.apply(vm, changes)
        vm.changed = self.clock.utc()


def _settings_for(vgpus: tuple[str, ...]) -> dict[str, str]:
    """Return the MMIO settings that the VM's cards need, as its administrator would have set them."""
    # NVIDIA AI Enterprise: cards with large BARs need both settings, with a size that depends on the card.
    needed = sum(MMIO_GB.get(vgpu.split("-")[0], 0) for vgpu in vgpus)
    return {"pciPassthru.64bitMMIOSizeGB": str(needed), "pciPassthru.use64bitMMIO": "TRUE"} if needed else {}
