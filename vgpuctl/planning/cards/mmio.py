"""How much address space a VM must have for the BARs of its vGPUs' cards: NVIDIA's and VMware's words, by board."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: GiB for each vGPU, by the stem of its type. Boards that are not here need none that we know of.
_GIB = {
    **dict.fromkeys(("v100", "v100x", "v100l", "v100d", "v100dx", "v100s", "a30"), 64),
    **dict.fromkeys(("a100", "a100x"), 128),
    **dict.fromkeys(("a100d", "a100dx", "h100", "h100xm", "h100l", "h100xl"), 256),
}

_STEM = re.compile(r"(?:grid|nvidia)_([a-z0-9]+)-")


def mmio_needed(vgpus: Iterable[str]) -> int:
    """In GiB, for all of them together."""
    stems = (match.group(1) for vgpu in vgpus if (match := _STEM.match(vgpu)))
    return sum(_GIB.get(stem, 0) for stem in stems)
