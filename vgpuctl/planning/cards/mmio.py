"""How much address space a VM needs for the BARs of its vGPUs' cards."""

from __future__ import annotations

from collections.abc import Iterable

from vgpuctl.planning.cards.boards import ADDRESS_SPACE_GIB, type_of


def mmio_needed(vgpus: Iterable[str]) -> int:
    """Return the address space for all these vGPUs together, in GiB."""
    return sum(ADDRESS_SPACE_GIB.get(type_of(vgpu).stem, 0) for vgpu in vgpus)
