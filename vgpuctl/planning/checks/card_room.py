"""Wishes for which a host has no room on its cards or in its memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import CardMode, Host
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.card_rules import Load, kind_of
from vgpuctl.planning.cards.placement import Vgpus, can_be_started, fits, may_choose, needs_of
from vgpuctl.planning.cards.policy import PolicyTrap, policy_trap
from vgpuctl.planning.cards.releases import stops, vgpus_wished
from vgpuctl.planning.cards.seating import PossibleSeatings, occupants, possible_seatings
from vgpuctl.planning.checks.host_memory import MemoryFull, shortage

MODE_WORDS = {
    CardMode.SAME_SIZE: "same size",
    CardMode.MIXED_SIZE: "mixed size",
    CardMode.MIG: "MIG",
}


@dataclass(frozen=True, kw_only=True)
class RoomRefusal(Refusal):
    """A lack of room on the cards. `keeps`: the VMs that stay on cards, a line each."""

    wish: str
    workers: tuple[str, ...]
    keeps: tuple[str, ...] = ()
    trap: PolicyTrap | None = None

    @property
    @abstractmethod
    def reasons(self) -> tuple[str, ...]: ...

    @property
    def details(self) -> tuple[str, ...]:
        return (*self.reasons, *self.keeps, *([str(self.trap)] if self.trap else []))


@dataclass(frozen=True, kw_only=True)
class NoCardRoom(RoomRefusal):
    """`too_large`: workers whose type no card of the host holds, even if it were empty; with that type."""

    code = "VG301"
    title = "No card of the host will have room for workers that the wish starts."
    way_out = "Take a worker off the shift, move it to another host, or give it a smaller profile."

    too_large: tuple[tuple[str, str], ...]
    cards: tuple[str, ...]

    @property
    def message(self) -> str:
        return f"{self.wish} cannot begin on {self.host}: no card will have room for {' '.join(self.workers)}."

    @property
    def reasons(self) -> tuple[str, ...]:
        cards = ", ".join(self.cards)
        return tuple(f"{name} needs {vgpu}, which none of these can hold: {cards}" for name, vgpu in self.too_large)


@dataclass(frozen=True, kw_only=True)
class RoomNotCertain(RoomRefusal):
    """`modes`: the modes of cards on which the place of a vGPU cannot be seen. `seats_known`: whether its card can."""

    code = "VG302"
    title = "There is room on the cards, but vCenter may choose them so that a worker finds none."
    way_out = (
        "Give the workers profiles of one size, take a worker off the shift, or try again when vCenter shows on "
        "which card each VM is."
    )

    seats_known: bool
    modes: tuple[CardMode, ...]

    @property
    def message(self) -> str:
        return (
            f"{self.wish} may not end well on {self.host}: there is room for {' '.join(self.workers)}, but vCenter "
            "chooses the cards, and may choose them so that one worker finds none."
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        seats = [] if self.seats_known else [f"{self.host} does not say yet on which card each of its VMs sits"]
        places = (
            f"no host says at which place of a card in {MODE_WORDS[mode]} mode a vGPU sits: the worst is assumed"
            for mode in self.modes
        )
        return (*seats, *places)


class Moves(NamedTuple):
    """The names of the workers that leave a host's cards, and the workers that start there, with their vGPUs."""

    leaving: frozenset[str]
    carrying: Mapping[str, Vgpus]

    @classmethod
    def of(cls, wish: Wish, workers: list[Worker]) -> Moves:
        leaving = frozenset(w.name for w in workers if stops(wish, w))
        starting = (w for w in workers if wish.workers[w.name].awake and (not w.on or w.name in leaving))
        return cls(leaving, {w.name: vgpus for w in starting if (vgpus := vgpus_wished(wish, w))})


def against_room(fleet: Fleet, wish: Wish, host: Host, workers: list[Worker]) -> Iterator[Refusal]:
    """Refuse workers that have no room on cards or in memory once all leaving workers are gone.

    All workers that shall run must be startable, whatever card vCenter chooses.
    """
    moves = Moves.of(wish, workers)
    if not moves.carrying:
        return
    # Release before acquire (architecture.md, One look): room is judged as it is once all leaving VMs are gone.
    later = possible_seatings(host, occupants(fleet, host, moves.leaving, gone=True), moves.carrying.values())
    needs = needs_of(moves.carrying.values())
    if not (later.complete and all(can_be_started(loads, needs) for loads in later.ways)):
        staying = [w.vgpus for w in workers if w.on and w.name not in moves.leaving]
        common: dict[str, Any] = {
            "host": host.name,
            "wish": wish.name,
            "workers": tuple(moves.carrying),
            "keeps": tuple(_holders(fleet, host, moves.leaving)),
            "trap": policy_trap(host, [*staying, *moves.carrying.values()]),
        }
        # vSphere: the card is vCenter's choice. Room that one choice could waste is no certain room.
        if any(fits(loads, needs) for loads in later.ways):
            yield RoomNotCertain(seats_known=later.exact, modes=_unclear_modes(later), **common)
        else:
            yield NoCardRoom(too_large=tuple(_too_large(host, moves.carrying)), cards=_kinds(host), **common)
    # vSphere: a start or resume needs the VM's whole reserved memory free on its host.
    starting = [worker for worker in workers if worker.name in moves.carrying]
    if short := shortage(fleet, host, moves.leaving, starting):
        yield MemoryFull(host=host.name, wish=wish.name, workers=tuple(moves.carrying), short=short)


def _unclear_modes(later: PossibleSeatings) -> tuple[CardMode, ...]:
    """Return the modes in which the place of a vGPU on its card matters. No host says that place."""
    modes = {load.kind.mode for loads in later.ways for load in loads if load.held}
    return tuple(sorted(modes - {CardMode.SAME_SIZE}))


def _kinds(host: Host) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{card.model} ({MODE_WORDS[card.mode]})" for card in host.cards))


def _too_large(host: Host, carrying: Mapping[str, Vgpus]) -> Iterator[tuple[str, str]]:
    """Yield the workers and types that no card of this host could hold even if it were empty."""
    empty = tuple(Load(kind_of(card)) for card in host.cards)
    for name, vgpus in carrying.items():
        for vgpu in dict.fromkeys(vgpus):
            if empty and not may_choose(empty, vgpu):
                yield name, vgpu


def _holders(fleet: Fleet, host: Host, leaving: Collection[str]) -> Iterator[str]:
    for card in host.cards:
        for name in card.holds:
            # vSphere: `graphicsInfo.vm` may lag, so a VM that it lists counts only while the VM runs.
            if name in leaving or not _runs(fleet, name):
                continue
            yield f"{card.pci_id} keeps {name} ({' '.join(fleet.vgpus_of(name)) or 'unknown vGPU'})"
    if not host.cards:
        yield f"{host.name} has no card that is shared for vGPUs"


def _runs(fleet: Fleet, name: str) -> bool:
    if name in fleet.workers:
        return fleet.worker(name).on
    return name not in fleet.strangers or fleet.strangers[name].on
