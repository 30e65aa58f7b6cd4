"""Hosts and their cards, as vCenter reports them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from vgpuctl.model.admission import Admission


class CardMode(StrEnum):
    """How a card is divided, in vSphere's own words."""

    # vSphere: the default. The first VM fixes the card's size until all its VMs are off or suspended.
    SAME_SIZE = "sameSize"
    # vSphere 8.0 U3, boards of Ampere and newer.
    MIXED_SIZE = "mixedSize"
    MIG = "multiInstanceGpu"


class Policy(StrEnum):
    """Which card vCenter takes if several have room, in vSphere's own words."""

    # vSphere: `performance`, the default, takes the card with the fewest VMs; `consolidation` fills one card first.
    PERFORMANCE = "performance"
    CONSOLIDATION = "consolidation"


class TypeFacts(NamedTuple):
    """Facts about a vGPU type that its name may not say: its frame and its series (c, q, a, b).

    They come from the files or from a host.
    """

    vgpu: str
    gib: int | None = None
    series: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One physical GPU. `holds`: the VMs that the host reports on it; this may lag behind the power states.

    `type_facts`: facts about vGPU types, which count instead of the types' names.
    """

    pci_id: str
    model: str
    frame_mib: int
    # vSphere: `graphicsInfo.vm` says who sits on which card, and may lag. Power states are what counts.
    holds: tuple[str, ...] = ()
    # vSphere: only a card of graphics type `sharedDirect` holds vGPUs.
    shared: bool = True
    mode: CardMode = CardMode.SAME_SIZE
    type_facts: tuple[TypeFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One ESXi host.

    `unshared`: cards that cannot hold vGPUs as they are set. `memory_mib` 0: not known.
    `not_suspendable`: the vGPU types with which no VM of this host can be suspended. `admission`: what HA keeps free in
    its cluster, if it was asked for.
    """

    name: str
    cards: tuple[Card, ...] = ()
    unshared: tuple[Card, ...] = ()
    offers: tuple[str, ...] = ()
    # vSphere: `SharedGpuCapabilities.suspendSupported`, per host and type.
    not_suspendable: frozenset[str] = frozenset()
    policy: Policy = Policy.PERFORMANCE
    cluster: str = ""
    admission: Admission | None = None
    memory_mib: int = 0
    maintenance: bool = False
    connected: bool = True
