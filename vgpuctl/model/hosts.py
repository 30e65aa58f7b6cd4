"""Hosts and their cards, as vCenter tells of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from vgpuctl.model.admission import Admission


class CardMode(StrEnum):
    """How a card is divided, in vSphere's own words."""

    SAME_SIZE = "sameSize"
    MIXED_SIZE = "mixedSize"
    MIG = "multiInstanceGpu"


class Policy(StrEnum):
    """Which card vCenter takes where several have room, in vSphere's own words."""

    PERFORMANCE = "performance"
    CONSOLIDATION = "consolidation"


class TypeFacts(NamedTuple):
    """What a vGPU type's name may not say, as the files or a host say it: its frame, and its series (c, q, a, b)."""

    vgpu: str
    gib: int | None = None
    series: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One physical GPU. `holds` is what the host says; it may lag behind the power states.

    `told`: of vGPU types, what counts instead of their names.
    """

    pci_id: str
    model: str
    frame_mib: int
    holds: tuple[str, ...] = ()
    shared: bool = True
    mode: CardMode = CardMode.SAME_SIZE
    told: tuple[TypeFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """`unshared`: cards that are no good for vGPUs as they are set. `memory_mib` 0: not known.

    `not_suspendable`: the vGPU types with which no VM of this host can be suspended. `admission`: what HA keeps free in
    its cluster, where anybody asked.
    """

    name: str
    cards: tuple[Card, ...] = ()
    unshared: tuple[Card, ...] = ()
    offers: tuple[str, ...] = ()
    not_suspendable: frozenset[str] = frozenset()
    policy: Policy = Policy.PERFORMANCE
    cluster: str = ""
    admission: Admission | None = None
    memory_mib: int = 0
    maintenance: bool = False
    connected: bool = True
