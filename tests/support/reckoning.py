"""An independent reckoning of the vGPU physics: NVIDIA's tables and vSphere's rules, in words of its own.

It knows nothing of the simulator. It does not say what happens but which outcomes are lawful: the card, and the
place on it, are the host's choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from tests.support.transcript import CARDS, PLACES, Card

UNPLACED = -1


class Type(NamedTuple):
    """One vGPU type on one kind of card in one mode."""

    name: str
    width: int
    most: int
    starts: tuple[int, ...]


@cache
def types_of(model: str, mode: str) -> dict[str, Type]:
    """By name: empty where the card does not know the mode."""
    card = CARDS[model]
    stem = f"{card.prefix}{card.stems[0]}"
    if mode == "mig":
        return {f"{stem}-{name}c": Type(f"{stem}-{name}c", i.width, i.most, i.starts) for name, i in card.mig.items()}
    return {each.name: each for each in _slices(stem, card, mode == "mixedSize")}


def _slices(stem: str, card: Card, mixed: bool) -> list[Type]:
    found = []
    for letter in card.series.lower().split():
        counts = card.mixed if mixed else card.same | (card.q_only if letter == "q" else {})
        for gb, most in counts.items():
            starts = PLACES.get(card.gb, {}).get(gb, ()) if mixed else ()
            found.append(Type(f"{stem}-{gb}{letter}", gb, most, starts))
    return found


class Sitting(NamedTuple):
    vm: str
    type: str
    start: int


@dataclass(frozen=True)
class Chip:
    model: str
    mode: str
    sitting: tuple[Sitting, ...] = ()

    def starts_for(self, name: str) -> list[int]:
        types = types_of(self.model, self.mode)
        if name not in types:
            return []
        wanted, there = types[name], [types[each.type] for each in self.sitting]
        if self.mode == "sameSize":
            alike = all(each.width == wanted.width for each in there)
            return [UNPLACED] if alike and len(there) < wanted.most else []
        if not wanted.starts:
            fits = sum(each.width for each in there) + wanted.width <= CARDS[self.model].gb
            return [UNPLACED] if fits and sum(each.width == wanted.width for each in there) < wanted.most else []
        used = {slot for each in self.sitting for slot in range(each.start, each.start + types[each.type].width)}
        return [start for start in wanted.starts if used.isdisjoint(range(start, start + wanted.width))]

    def with_one_more(self, sitting: Sitting) -> Chip:
        return replace(self, sitting=(*self.sitting, sitting))

    def is_lawful(self) -> bool:
        """Could they have sat down one after another?"""
        before = replace(self, sitting=())
        for sitting in self.sitting:
            if sitting.start not in before.starts_for(sitting.type):
                return False
            before = before.with_one_more(sitting)
        return True

    def without(self, vm: str) -> Chip:
        return replace(self, sitting=tuple(each for each in self.sitting if each.vm != vm))

    def vms(self) -> set[str]:
        return {each.vm for each in self.sitting}


@dataclass
class Box:
    """A host."""

    memory_mib: int
    policy: str
    chips: list[Chip]
    cannot_suspend: set[str] = field(default_factory=set)
    in_maintenance: bool = False


@dataclass
class Machine:
    """A VM."""

    host: str
    memory_mib: int
    sriov: bool = False
    types: list[str] = field(default_factory=list)
    locked: bool = False
    power: str = "off"

    def taken_mib(self) -> int:
        """What a running VM takes: its memory if it is reserved, and always the overhead of a VM with eight CPUs."""
        return (self.memory_mib if self.locked else 0) + -(-(472_000 + 74 * self.memory_mib) // 10_000)


class Refused(NamedTuple):
    fault: str


class Sits(NamedTuple):
    """It runs on this host, its vGPUs on these cards: (card, type, start) in order."""

    host: str
    seats: tuple[tuple[int, str, int], ...]


class Done(NamedTuple):
    """Nothing was left to choose."""


Outcome = Refused | Sits | Done


class Reckoning:
    def __init__(self, boxes: dict[str, Box], machines: dict[str, Machine], store_mib: int, drs: bool) -> None:
        self.boxes = boxes
        self.machines = machines
        self.store_mib = store_mib
        self.drs = drs

    def free_memory(self, host: str) -> int:
        running = (m for m in self.machines.values() if m.host == host and m.power == "on")
        return self.boxes[host].memory_mib - sum(machine.taken_mib() for machine in running)

    def on(self, vm: str) -> set[Outcome]:
        machine = self.machines[vm]
        if machine.power == "on":
            return {Refused("InvalidPowerState")}
        if machine.types and not machine.locked:
            return {Refused("GenericVmConfigFault")}
        at_home = self._on_at(vm, machine.host)
        elsewhere = [self._on_at(vm, host) for host in self.boxes if host != machine.host] if self.drs else []
        if not elsewhere or not any(isinstance(outcome, Refused) for outcome in at_home):
            return at_home
        lawful: set[Outcome] = {
            outcome for outcomes in (at_home, *elsewhere) for outcome in outcomes if isinstance(outcome, Sits)
        }
        full_everywhere = all(any(isinstance(o, Refused) for o in outcomes) for outcomes in elsewhere)
        return lawful | ({Refused("NoCompatibleHost")} if full_everywhere else set())

    def suspend(self, vm: str) -> set[Outcome]:
        machine = self.machines[vm]
        if machine.power != "on":
            return {Refused("InvalidPowerState")}
        if machine.sriov or set(machine.types) & self.boxes[machine.host].cannot_suspend:
            return {Refused("GenericVmConfigFault")}
        return {Refused("NoDiskSpace") if machine.memory_mib > self.store_mib else Done()}

    def off(self, vm: str) -> set[Outcome]:
        return {Refused("InvalidPowerState") if self.machines[vm].power == "off" else Done()}

    def give(self, vm: str, types: list[str]) -> set[Outcome]:
        machine = self.machines[vm]
        if not machine.types and not types:
            return {Done()}
        if machine.power != "off":
            return {Refused("InvalidPowerState")}
        chips = self.boxes[machine.host].chips
        known = all(any(name in types_of(chip.model, chip.mode) for chip in chips) for name in types)
        return {Done() if known else Refused("InvalidDeviceBacking")}

    def lock(self, vm: str, locked: bool) -> set[Outcome]:
        machine = self.machines[vm]
        more = locked and not machine.locked and machine.power == "on"
        short = more and machine.memory_mib > self.free_memory(machine.host)
        return {Refused("InsufficientMemoryResourcesFault") if short else Done()}

    def maintain(self, host: str, wanted: bool) -> set[Outcome]:
        runs = any(machine.host == host and machine.power == "on" for machine in self.machines.values())
        return {Refused("InvalidState") if wanted and runs else Done()}

    # What has happened is written down by the caller, after it was found lawful.

    def now_on(self, vm: str, outcome: Sits) -> None:
        machine = self.machines[vm]
        if machine.power == "suspended":
            self.store_mib += machine.memory_mib
        machine.host, machine.power = outcome.host, "on"
        chips = self.boxes[outcome.host].chips
        for card, name, start in outcome.seats:
            chips[card] = chips[card].with_one_more(Sitting(vm, name, start))

    def now_down(self, vm: str, to: str) -> None:
        machine = self.machines[vm]
        if machine.power == "suspended":
            self.store_mib += machine.memory_mib
        if to == "suspended":
            self.store_mib -= machine.memory_mib
        machine.power = to
        box = self.boxes[machine.host]
        box.chips = [chip.without(vm) for chip in box.chips]

    def _on_at(self, vm: str, host: str) -> set[Outcome]:
        machine, box = self.machines[vm], self.boxes[host]
        if box.in_maintenance:
            return {Refused("InvalidState")}
        if machine.taken_mib() > self.free_memory(host):
            return {Refused("InsufficientMemoryResourcesFault")}
        found = seatings(vm, machine.types, box.chips, box.policy)
        full = Refused("InsufficientGraphicsResourcesFault")
        return {full if seats is None else Sits(host, seats) for seats in found}


Seats = tuple[tuple[int, str, int], ...]


def seatings(vm: str, types: Sequence[str], chips: Sequence[Chip], policy: str) -> set[Seats | None]:
    """Every lawful way to seat these vGPUs one after another; None: a way that ends with one left standing."""
    if not types:
        return {()}
    starts = {card: chip.starts_for(types[0]) for card, chip in enumerate(chips)}
    rooms = {card: len(chips[card].vms()) for card in starts if starts[card]}
    if not rooms:
        return {None}
    wanted = min(rooms.values()) if policy == "performance" else max(rooms.values())
    found: set[Seats | None] = set()
    for card in (card for card, count in rooms.items() if count == wanted):
        for start in starts[card]:
            after = [*chips]
            after[card] = chips[card].with_one_more(Sitting(vm, types[0], start))
            for rest in seatings(vm, types[1:], after, policy):
                found.add(None if rest is None else tuple(sorted(((card, types[0], start), *rest))))
    return found
