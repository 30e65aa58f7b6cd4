"""An independent reckoning of the vGPU physics: NVIDIA's tables and vSphere's rules, in words of its own.

It knows nothing of the simulator. It does not say what happens but which outcomes are lawful: the card, and the
place on it, are the host's choice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

# Stem, GB, series; then GB:count, →n the lower count in mixed size; then what series Q has besides.
TIME_SLICED = {
    "P100-16": "grid_p100 16 QC | 16:1 8:2 4:4 | 2:8 1:16",
    "V100-16": "grid_v100 16 QC | 16:1 8:2 4:4 | 2:8 1:16",
    "T4": "grid_t4 16 QC | 16:1 8:2 4:4 | 2:8 1:16",
    "V100-32": "grid_v100d 32 QC | 32:1 16:2 8:4 4:8 | 2:16 1:32",
    "A100-40": "nvidia_a100 40 C | 40:1 20:2 10:4 8:5→4 5:8 4:10→8 |",
    "A100-80": "nvidia_a100d 80 C | 80:1 40:2 20:4 16:5→4 10:8 8:10→8 4:20→16 |",
    "A30": "nvidia_a30 24 C | 24:1 12:2 8:3→2 6:4 4:6→4 |",
    "L4": "nvidia_l4 24 QC | 24:1 12:2 8:3→2 6:4 4:6→4 |",
    "A40": "nvidia_a40 48 QC | 48:1 24:2 16:3→2 12:4 8:6→4 6:8 4:12→8 |",
    "L40": "nvidia_l40 48 QC | 48:1 24:2 16:3→2 12:4 8:6→4 6:8 4:12→8 |",
    "L40S": "nvidia_l40s 48 QC | 48:1 24:2 16:3→2 12:4 8:6→4 6:8 4:12→8 |",
    "H100-80": "nvidia_h100 80 C | 80:1 40:2 20:4 16:5→4 10:8 8:10→8 4:20→16 5:16 |",
    "H100-94": "nvidia_h100l 94 C | 94:1 47:2 23:4 15:6→4 11:8 6:15→8 4:23→16 |",
    "H200": "nvidia_h200 141 C | 141:1 70:2 35:4 28:5 17:8 14:10 8:16 7:20 4:32 |",
}
NO_MIXED_SIZE = {"P100-16", "V100-16", "T4", "V100-32"}

# Compute slices - GB : count, and how `nvidia-smi mig -lgipp` writes the places: {starts}:width in memory slices.
_A100_40 = "7-40:1{0}:8 4-20:1{0}:4 3-20:2{0,4}:4 2-10:3{0,2,4}:2 1-10:4{0,2,4,6}:2 1-5:7{0,1,2,3,4,5,6}:1"
_OF_80 = "7-80:1{0}:8 4-40:1{0}:4 3-40:2{0,4}:4 2-20:3{0,2,4}:2 1-20:4{0,2,4,6}:2 1-10:7{0,1,2,3,4,5,6}:1"
MIG = {
    "A100-40": _A100_40,
    "A100-80": _OF_80,
    "A30": "4-24:1{0}:4 2-12:2{0,2}:2 1-6:4{0,1,2,3}:1",
    "H100-80": _OF_80,
    "H100-94": "7-94:1{0}:8 4-47:1{0}:4 3-47:2{0,4}:4 2-24:3{0,2,4}:2 1-24:4{0,2,4,6}:2 1-12:7{0,1,2,3,4,5,6}:1",
    "H200": "7-141:1{0}:8 4-71:1{0}:4 3-71:2{0,4}:4 2-35:3{0,2,4}:2 1-35:4{0,2,4,6}:2 1-18:7{0,1,2,3,4,5,6}:1",
}

# NVIDIA's "vGPU placements for GPUs in mixed-size mode": by the card's GB, each size and where it may begin.
_OF_24_GB = {24: "0", 12: "0 12", 8: "0 16", 6: "0 6 12 18", 4: "0 8 12 20"}
_OF_40_GB = {
    40: "0",
    20: "0 20",
    10: "0 10 20 30",
    8: "0 12 20 32",
    5: "0 5 10 15 20 25 30 35",
    4: "0 6 10 16 20 26 30 36",
}
PLACEMENTS = {
    24: _OF_24_GB,
    40: _OF_40_GB,
    48: {48: "0", 24: "0 24", 16: "0 32", 12: "0 12 24 36", 8: "0 16 24 40", 6: "0 6 12 18 24 30 36 42"}
    | {4: "0 8 12 20 24 32 36 44"},
    80: {80: "0", 40: "0 40", 20: "0 20 40 60", 16: "0 24 40 64", 10: "0 10 20 30 40 50 60 70"}
    | {8: "0 12 20 32 40 52 60 72", 5: "0 5 10 15 20 25 30 35 40 45 50 55 60 65 70 75"}
    | {4: "0 6 10 16 20 26 30 36 40 46 50 56 60 66 70 76"},
    94: {94: "0", 47: "0 47", 23: "0 24 47 71", 15: "0 32 47 79", 11: "0 12 23 36 47 59 70 83"}
    | {6: "0 17 23 41 47 64 70 88", 4: "0 7 11 19 23 31 35 43 47 54 58 66 70 78 82 90"},
}
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
    stem, size, series = TIME_SLICED[model].split("|")[0].split()
    if mode == "mig":
        return {each.name: each for each in _instances(stem, MIG.get(model, ""))}
    if mode == "mixedSize" and model in NO_MIXED_SIZE:
        return {}
    return {each.name: each for each in _slices(stem, int(size), series, model, mode == "mixedSize")}


def _slices(stem: str, size: int, series: str, model: str, mixed: bool) -> list[Type]:
    _, both, q_alone = TIME_SLICED[model].split("|")
    found = []
    for letter in series.lower():
        for row in (both + q_alone if letter == "q" else both).split():
            gb, _, counts = row.partition(":")
            same, _, lower = counts.partition("→")
            starts = PLACEMENTS.get(size, {}).get(int(gb), "") if mixed else ""
            most = int(lower or same) if mixed else int(same)
            found.append(Type(f"{stem}-{gb}{letter}", int(gb), most, tuple(map(int, starts.split()))))
    return found


def _instances(stem: str, rows: str) -> list[Type]:
    found = []
    for name, most, starts, width in re.findall(r"(\d+-\d+):(\d+){([\d,]+)}:(\d+)", rows):
        found.append(Type(f"{stem}-{name}c", int(width), int(most), tuple(map(int, starts.split(",")))))
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
            size = int(TIME_SLICED[self.model].split()[1])
            fits = sum(each.width for each in there) + wanted.width <= size
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
        running = (m for m in self.machines.values() if m.host == host and m.power == "on" and m.locked)
        return self.boxes[host].memory_mib - sum(machine.memory_mib for machine in running)

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
        if machine.locked and machine.memory_mib > self.free_memory(host):
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
