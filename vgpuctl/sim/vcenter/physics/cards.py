"""The rules of one physical GPU in its mode, and which card each vGPU of a VM gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vgpuctl.sim.card_models import CardMode, Offer
from vgpuctl.sim.inventory import CardSpec

ANYWHERE = -1
"""The place of a vGPU in a mode without places."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One vGPU of one VM on a card, from slot `place` on."""

    vm_moid: str
    vgpu: str
    place: int = ANYWHERE


@dataclass(eq=False, slots=True)
class Card:
    """`seats` is the truth. `booked`: the VMs that the host's books name, which may be late."""

    spec: CardSpec
    seats: list[Seat] = field(default_factory=list)
    booked: list[str] = field(default_factory=list)

    def vm_moids(self) -> list[str]:
        return list(dict.fromkeys(seat.vm_moid for seat in self.seats))

    def holds(self, vm_moid: str) -> bool:
        return any(seat.vm_moid == vm_moid for seat in self.seats)

    def places_for(self, vgpu: str) -> list[int]:
        """Return where one more vGPU of this type may begin; nothing if it does not fit."""
        offer = self.spec.offers.get(vgpu)
        if offer is None:
            return []
        # NVIDIA: in mixed size and in MIG a vGPU may only begin at the places that its tables name.
        if offer.places:
            return [place for place in offer.places if not self._used_slots() & _slots(place, offer)]
        return [ANYWHERE] if self._fits_anywhere(offer) else []

    def take(self, vm_moid: str, vgpu: str) -> None:
        """Choose the place that leaves most room for others, as VMware's engineers describe ESXi's choice."""
        offer = self.spec.offers[vgpu]
        place = min(self.places_for(vgpu), key=lambda place: self._room_lost(place, offer))
        self.seats.append(Seat(vm_moid, vgpu, place))

    def release(self, vm_moid: str) -> None:
        self.seats = [seat for seat in self.seats if seat.vm_moid != vm_moid]

    def _fits_anywhere(self, offer: Offer) -> bool:
        """In mixed size without documented places (inferred): up to the table's count, while the frame
        buffer suffices.
        """
        widths = [self.spec.offers[seat.vgpu].width for seat in self.seats]
        # vSphere: the first VM fixes the card's size until all its VMs are off or suspended.
        # vSphere 8.0 U2: series C and Q of one size may share a card, so only the size is compared.
        if self.spec.mode is CardMode.SAME_SIZE:
            return all(width == offer.width for width in widths) and len(widths) < offer.most
        # vSphere 8.0 U3: mixed size takes several sizes, with the lower counts of NVIDIA's tables.
        enough_frame = (sum(widths) + offer.width) * 1024 <= self.spec.frame_mib
        return enough_frame and widths.count(offer.width) < offer.most

    def _used_slots(self) -> int:
        """Return the slots in use, as bits."""
        bits = 0
        for seat in self.seats:
            bits |= _slots(seat.place, self.spec.offers[seat.vgpu])
        return bits

    def _room_lost(self, place: int, offer: Offer) -> int:
        """Return how many slots, over the places of all types that are free now, this place would make unusable."""
        used, wanted = self._used_slots(), _slots(place, offer)
        candidates = ((each.width, _slots(start, each)) for each in self.spec.offers.values() for start in each.places)
        return sum(width for width, bits in candidates if bits & wanted and not bits & used)


def seat(vm_moid: str, vgpus: Iterable[str], cards: Sequence[Card], policy: str) -> bool:
    """Place all of a VM's vGPUs, one after another, or none of them."""
    for vgpu in vgpus:
        # vSphere: the card of each vGPU is vCenter's choice.
        candidates = [card for card in cards if card.places_for(vgpu)]
        if not candidates:
            release(vm_moid, cards)
            return False
        _preferred(candidates, policy).take(vm_moid, vgpu)
    return True


def release(vm_moid: str, cards: Iterable[Card]) -> None:
    for card in cards:
        card.release(vm_moid)


def _preferred(candidates: Sequence[Card], policy: str) -> Card:
    """`performance` takes the card with the fewest VMs, `consolidation` that with the most; the first card
    wins a tie.
    """
    # vSphere API: `HostGraphicsConfig.sharedPassthruAssignmentPolicy`; `performance` is the default.
    if policy == "consolidation":
        return max(candidates, key=lambda card: len(card.vm_moids()))
    return min(candidates, key=lambda card: len(card.vm_moids()))


def _slots(place: int, offer: Offer) -> int:
    return ((1 << offer.width) - 1) << place if offer.places else 0
