"""The rules of one physical GPU in same-size mode, and which card a VM gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vgpuctl.sim.inventory import CardSpec


@dataclass(frozen=True, slots=True)
class Seat:
    """One vGPU of one VM on a card."""

    vm_moid: str
    vgpu: str


@dataclass(eq=False, slots=True)
class Card:
    spec: CardSpec
    seats: list[Seat] = field(default_factory=list)

    def vm_moids(self) -> list[str]:
        return list(dict.fromkeys(seat.vm_moid for seat in self.seats))

    def holds(self, vm_moid: str) -> bool:
        return any(seat.vm_moid == vm_moid for seat in self.seats)

    def has_room_for(self, vgpu: str) -> bool:
        most = self.spec.vgpus.get(vgpu, 0)
        same_size = all(frame_gb(seat.vgpu) == frame_gb(vgpu) for seat in self.seats)
        return same_size and len(self.seats) < most

    def release(self, vm_moid: str) -> None:
        self.seats = [seat for seat in self.seats if seat.vm_moid != vm_moid]


def frame_gb(vgpu: str) -> int:
    """A vGPU type's size: the number at its end, as in grid_v100-4q or nvidia_a100-3-20c."""
    found = re.search(r"-(\d+)[a-z]+$", vgpu)
    if not found:
        raise ValueError(f"no vGPU type: {vgpu}")
    return int(found.group(1))


def seat(vm_moid: str, vgpus: Iterable[str], cards: Sequence[Card], policy: str) -> bool:
    """Put all of a VM's vGPUs on cards, or none of them."""
    for vgpu in vgpus:
        rooms = [card for card in cards if card.has_room_for(vgpu)]
        if not rooms:
            release(vm_moid, cards)
            return False
        _preferred(rooms, policy).seats.append(Seat(vm_moid, vgpu))
    return True


def release(vm_moid: str, cards: Iterable[Card]) -> None:
    for card in cards:
        card.release(vm_moid)


def _preferred(rooms: Sequence[Card], policy: str) -> Card:
    """`performance` spreads VMs over the cards, `consolidation` fills one card first; the first card wins a tie."""
    if policy == "consolidation":
        return max(rooms, key=lambda card: len(card.vm_moids()))
    return min(rooms, key=lambda card: len(card.vm_moids()))
