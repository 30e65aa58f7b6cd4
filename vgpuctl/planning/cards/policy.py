"""The trap of vCenter's default policy: small vGPUs spread over all cards and lock each card to their size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

from vgpuctl.model.hosts import Host, Policy
from vgpuctl.planning.cards.card_rules import Load, kind_of
from vgpuctl.planning.cards.placement import Vgpus, may_choose


@dataclass(frozen=True, slots=True)
class PolicyTrap:
    """The trap on one host. `cards`: how many cards could take `big`; a `small` vGPU may land on each of them."""

    host: str
    small: str
    big: str
    cards: int

    def __str__(self) -> str:
        return (
            f"{self.host} spreads VMs over its {self.cards} cards (policy performance): {self.small} may lock all of "
            f"them to its size, and then {self.big} starts nowhere until a card is empty"
        )


def policy_trap(host: Host, workers: Iterable[Vgpus]) -> PolicyTrap | None:
    """Return the first pair of types that may spring the trap on this host; None if its workers cannot spring it."""
    vgpus = [vgpu for carried in workers for vgpu in carried]
    # vSphere: `performance`, the default, takes the card with the fewest VMs; `consolidation` fills one card first.
    if host.policy is not Policy.PERFORMANCE:
        return None
    pairs = permutations(dict.fromkeys(vgpus), 2)
    return next((trap for small, big in pairs if (trap := _locks(host, small, big, vgpus.count(small)))), None)


def _locks(host: Host, small: str, big: str, count: int) -> PolicyTrap | None:
    """Return the trap if one `small` on each card that takes `big` would be enough to keep `big` out."""
    empty = tuple(Load(kind_of(card)) for card in host.cards)
    # NVIDIA, same size: one small vGPU locks a card to its size. That spreading locks every card is inferred.
    cards = may_choose(empty, big)
    locked = [index for index in cards if empty[index].room(small) > 1 and not empty[index].with_one(small).room(big)]
    if len(cards) < 2 or locked != cards or count < len(cards):
        return None
    return PolicyTrap(host.name, small, big, len(cards))
