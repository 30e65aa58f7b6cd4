"""Cards that hold more than they can: a lawful world has none."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.hosts import Host
from vgpuctl.planning.cards.seating import Occupant, booked, possible_seatings


def overfull(fleet: Fleet) -> list[str]:
    """Return the cards that hold more than NVIDIA's tables allow, or vGPUs of two sizes. A lawful world has none."""
    return [fault for host in fleet.hosts.values() for fault in _overfull_cards(fleet, host)]


def _overfull_cards(fleet: Fleet, host: Host) -> Iterator[str]:
    """Yield overfull cards by the host's books alone, whatever the power states: a VM in the books holds its place."""
    seated = [Occupant(name, vgpus, cards) for name, cards in booked(host).items() if (vgpus := fleet.vgpus_of(name))]
    for card, load in zip(host.cards, possible_seatings(host, seated).ways[0], strict=True):
        if not load.lawful():
            yield f"{card.pci_id} holds more than it can: {' '.join(card.holds)}"
