"""Random sequences of deeds over every card model, mode and policy end as the independent reckoning says they may."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.support.physics import GIB, change, kind, off, on, suspend, without_nodes
from tests.support.reckoning import (
    Box,
    Chip,
    Done,
    Machine,
    Outcome,
    Reckoning,
    Refused,
    Sits,
    Sitting,
    types_of,
)
from tests.support.transcript import CARDS
from vgpuctl.sim.card_models import MODELS, CardMode
from vgpuctl.sim.inventory import CardSpec, Durations, HostSpec, Inventory, VmSpec, pci_id
from vgpuctl.sim.vcenter.physics.records import Changes, Host, Operation, Power, Task, Vm
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.world import World

STEPS = 150
MODES = ["sameSize", "mixedSize", "mig"]
POLICIES = ["performance", "consolidation"]
KINDS = [(model, mode) for model in CARDS for mode in MODES if types_of(model, mode)]
EVERY_TYPE = [(model, mode, name) for model, mode in KINDS for name in types_of(model, mode)]


def world_of(cards: list[list[tuple[str, str]]], vms: list[VmSpec], **settings: object) -> World:
    """`cards`: for each host, the model and mode of each of its cards."""
    policy = str(settings.pop("policy", "performance"))
    memory_mib = int(str(settings.pop("memory_mib", 4096 * GIB)))
    unsuspendable = settings.pop("unsuspendable", ())
    hosts = tuple(
        HostSpec(
            f"esx-{number}",
            tuple(CardSpec(pci_id(n), MODELS[model], CardMode(mode)) for n, (model, mode) in enumerate(kinds)),
            policy,
            memory_mib,
            unsuspendable=unsuspendable,  # type: ignore[arg-type]
        )
        for number, kinds in enumerate(cards, start=1)
    )
    inventory = Inventory("gpu", hosts, tuple(vms), **settings)  # type: ignore[arg-type]
    return World(without_nodes(inventory), Durations.instant())


@pytest.mark.parametrize(("model", "mode", "vgpu"), EVERY_TYPE)
def test_one_card_takes_as_many_of_a_type_as_the_table_says(model: str, mode: str, vgpu: str) -> None:
    names = [f"vm-{n}" for n in range(40)]
    vms = [VmSpec(name, "esx-1", GIB, vgpus=(vgpu,), memory_locked=True) for name in names]
    world = world_of([[(model, mode)]], vms)
    started = 0
    while kind(on(world, names[started])) is None:
        started += 1
    assert started == types_of(model, mode)[vgpu].most


@pytest.mark.parametrize(("model", "mode"), KINDS)
def test_a_card_offers_the_tables_types_and_no_others(model: str, mode: str) -> None:
    offered = CardSpec(pci_id(0), MODELS[model], CardMode(mode)).vgpus
    assert offered == {name: each.most for name, each in types_of(model, mode).items()}


def test_the_tables_know_the_same_cards_and_modes() -> None:
    assert {(name, mode.value) for name, model in MODELS.items() for mode in model.offers} == set(KINDS)


@dataclass
class Case:
    """The same estate twice: simulated and reckoned."""

    world: World
    reckoning: Reckoning
    dice: random.Random
    types: list[str]

    @classmethod
    def of(cls, seed: str, cards: list[list[tuple[str, str]]], policy: str) -> Case:
        dice = random.Random(zlib.crc32(seed.encode()))
        types = sorted({name for kinds in cards for model, mode in kinds for name in types_of(model, mode)})
        drs, memory, store = len(cards) > 1, 160 * GIB, 60 * GIB
        frozen = set(dice.sample(types, 1))
        at_home = [[name for model, mode in kinds for name in types_of(model, mode)] for kinds in cards]
        vms = [
            VmSpec(
                f"vm-{n}",
                f"esx-{n % len(cards) + 1}",
                dice.choice([4, 8, 16, 32]) * GIB,
                vgpus=(dice.choice(at_home[n % len(cards)]),),
                memory_locked=True,
                sriov=n == 0,
            )
            for n in range(12 * len(cards))
        ]
        world = world_of(
            cards,
            vms,
            policy=policy,
            memory_mib=memory,
            unsuspendable=tuple(frozen),
            datastore_free_mib=store,
            drs=drs,
        )
        boxes = {
            f"esx-{number}": Box(memory, policy, [Chip(model, mode) for model, mode in kinds], frozen)
            for number, kinds in enumerate(cards, start=1)
        }
        machines = {vm.name: Machine(vm.host, vm.memory_mib, vm.sriov, list(vm.vgpus), vm.memory_locked) for vm in vms}
        return cls(world, Reckoning(boxes, machines, store, drs), dice, types)

    def step(self) -> None:
        """One random deed, done to both."""
        vm = self.dice.choice(list(self.world.estate.vms.values()))
        deeds: list[Callable[[Vm], None]] = [*[self.on] * 24, *[self.suspend] * 6, *[self.off] * 6]
        deeds += [self.give] * 5 + [self.lock] * 3 + [self.maintain]
        self.dice.choice(deeds)(vm)
        self.compare()

    def on(self, vm: Vm) -> None:
        lawful = self.reckoning.on(vm.name)
        before = vm.host
        task = on(self.world, vm.name)
        assert task.error or vm.host is before or self.reckoning.drs
        outcome = Refused(task.error.kind) if task.error else Sits(vm.host.name, seats(vm))
        assert outcome in lawful, f"{vm.name}: {outcome} is none of {lawful}"
        if isinstance(outcome, Sits):
            self.reckoning.now_on(vm.name, outcome)

    def suspend(self, vm: Vm) -> None:
        if self.lawfully(self.reckoning.suspend(vm.name), suspend(self.world, vm.name)):
            self.reckoning.now_down(vm.name, "suspended")

    def off(self, vm: Vm) -> None:
        if self.lawfully(self.reckoning.off(vm.name), off(self.world, vm.name)):
            self.reckoning.now_down(vm.name, "off")

    def give(self, vm: Vm) -> None:
        foreign = ["nvidia_b200-192c"] if self.dice.random() < 0.1 else []
        wanted = foreign or self.dice.choices(self.types, k=self.dice.choice([0, 1, 1, 1, 1, 1, 1, 1, 2, 2]))
        changes = Changes(removed=tuple((0, key) for key in vm.vgpus), added=tuple(enumerate(wanted, start=1)))
        lawful = self.reckoning.give(vm.name, wanted)
        if self.lawfully(lawful, change(self.world, vm.name, changes)):
            self.reckoning.machines[vm.name].types = wanted

    def lock(self, vm: Vm) -> None:
        locked = self.dice.random() < 0.8
        lawful = self.reckoning.lock(vm.name, locked)
        if self.lawfully(lawful, change(self.world, vm.name, Changes(memory_locked=locked))):
            self.reckoning.machines[vm.name].locked = locked

    def maintain(self, vm: Vm) -> None:
        host, wanted = vm.host, self.dice.random() < 0.3
        lawful = self.reckoning.maintain(host.name, wanted)
        try:
            self.world.estate.set_maintenance(host, wanted)
        except Refusal as refusal:
            assert Refused(refusal.kind) in lawful
        else:
            assert Done() in lawful
            self.reckoning.boxes[host.name].in_maintenance = wanted

    def lawfully(self, lawful: set[Outcome], task: Task) -> bool:
        outcome = Refused(task.error.kind) if task.error else Done()
        assert outcome in lawful, f"{task.operation.value.method} of {task.entity_name}: {outcome} is none of {lawful}"
        return not task.error

    def compare(self) -> None:
        estate, reckoned = self.world.estate, self.reckoning
        assert estate.places.stores[0].free_mib == reckoned.store_mib
        for name, host in estate.hosts.items():
            assert who_sits_where(self.world, host) == [sorted(chip.sitting) for chip in reckoned.boxes[name].chips]
            assert host.unreserved_mib == reckoned.free_memory(name)
            assert host.unreserved_mib >= 0
        for name, vm in estate.vms.items():
            machine = reckoned.machines[name]
            seen = (vm.power.name.lower(), vm.host.name, list(vm.vgpus.values()), vm.memory_locked)
            assert seen == (machine.power, machine.host, machine.types, machine.locked), name


def seats(vm: Vm) -> tuple[tuple[int, str, int], ...]:
    found = enumerate(vm.host.cards)
    return tuple(sorted((n, s.vgpu, s.place) for n, card in found for s in card.seats if s.vm_moid == vm.moid))


def who_sits_where(world: World, host: Host) -> list[list[tuple[str, str, int]]]:
    names = {vm.moid: name for name, vm in world.estate.vms.items()}
    return [sorted((names[seat.vm_moid], seat.vgpu, seat.place) for seat in card.seats) for card in host.cards]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("model", "mode"), KINDS)
def test_random_deeds_on_cards_of_one_kind(model: str, mode: str, policy: str) -> None:
    case = Case.of(f"{model} {mode} {policy}", [[(model, mode)] * 3], policy)
    for _ in range(STEPS):
        case.step()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(10))
def test_random_deeds_on_cards_of_all_kinds_under_drs(seed: int, policy: str) -> None:
    kinds = random.Random(seed).choices(KINDS, k=3)
    case = Case.of(f"{seed} {policy}", [kinds, kinds[:2]], policy)
    for _ in range(STEPS):
        case.step()


def deed_at_any_time(world: World, dice: random.Random) -> None:
    """What clients may ask at any time, whatever is going on: the tasks run side by side."""
    estate = world.estate
    vm = dice.choice(list(estate.vms.values()))
    start = dice.choice([estate.power_on, estate.power_on, estate.suspend, estate.power_off])
    try:
        if dice.random() < 0.05:
            on_a_host = [estate.crash, estate.disconnect, estate.connect, estate.connect]
            dice.choice(on_a_host)(dice.choice(list(estate.hosts.values())))
        elif vm.running_task and dice.random() < 0.3:
            estate.work.cancel(vm.running_task)
        elif vm.running_task and vm.question:
            estate.answer(vm, dice.choice("012"))
        else:
            fate = dice.choice([None, None, None, Refusal("Timedout", "injected")])
            estate.work.set_outcome(start(vm).moid, fate)
    except Refusal as refusal:
        assert refusal.kind in ("TaskInProgress", "NotSupported", "InvalidState")
    world.wait(dice.choice([0.0, 0.5, 3.0]))


def broken_laws(world: World) -> list[str]:
    broken = []
    for host in world.estate.hosts.values():
        for card, sitting in zip(host.cards, who_sits_where(world, host), strict=True):
            chip = Chip(card.spec.model.name, card.spec.mode.value, tuple(Sitting(*each) for each in sitting))
            broken += [] if chip.is_lawful() else [f"{host.name}: {chip}"]
        broken += [] if host.unreserved_mib >= 0 else [f"{host.name} has promised too much memory"]
    for vm in world.estate.vms.values():
        starting = vm.running_task and vm.running_task.operation is Operation.POWER_ON
        if vm.vgpus and not starting and (len(seats(vm)) == len(vm.vgpus)) != (vm.power is Power.ON):
            broken.append(f"{vm.name} is {vm.power} with {seats(vm)}")
    return broken if world.estate.places.stores[0].free_mib >= 0 else [*broken, "the datastore is overfull"]


@pytest.mark.parametrize("seed", range(30))
def test_deeds_side_by_side_break_no_law_and_leak_nothing(seed: int) -> None:
    dice = random.Random(seed)
    kinds = dice.choices(KINDS, k=2)
    types = [name for model, mode in kinds for name in types_of(model, mode)]
    vms = [
        VmSpec(
            f"vm-{n}",
            f"esx-{n % 2 + 1}",
            dice.choice([8, 16]) * GIB,
            vgpus=tuple(dice.choices(types, k=dice.choice([1, 1, 2]))),
            memory_locked=True,
            question="Well?" if n == 0 else "",
        )
        for n in range(16)
    ]
    policy = dice.choice(POLICIES)
    limits = {"memory_mib": 80 * GIB, "datastore_free_mib": 40 * GIB, "drs": seed % 2 == 0, "policy": policy}
    world = world_of([kinds, kinds], vms, **limits)
    world.durations.power_on_s, world.durations.suspend_s, world.durations.tasks_per_host = 2.0, 4.0, 3
    for _ in range(150):
        deed_at_any_time(world, dice)
        assert broken_laws(world) == []
    end_all(world)
    assert world.estate.places.stores[0].free_mib == 40 * GIB
    assert [host.unreserved_mib for host in world.estate.hosts.values()] == [80 * GIB] * 2
    assert not any(card.seats for host in world.estate.hosts.values() for card in host.cards)


def end_all(world: World) -> None:
    """Until nothing runs and all are off."""
    for host in world.estate.hosts.values():
        if not host.connected:
            world.estate.connect(host)
    for vm in world.estate.vms.values():
        while vm.running_task:
            if vm.question:
                world.estate.answer(vm, "0")
            else:
                world.clock.advance_to(world.clock.next_due_s() or 0.0)
        if vm.power is not Power.OFF:
            assert kind(off(world, vm.name)) is None
