"""How much address space a VM needs for the BARs of its vGPUs' cards, by board: figures of NVIDIA and VMware."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: GiB for each vGPU, by the stem of its type. Boards that are missing here need none, as far as we know.
_GIB = {
    **dict.fromkeys(("v100", "v100x", "v100l", "v100d", "v100dx", "v100s", "a30"), 64),
    **dict.fromkeys(("a100", "a100x"), 128),
    **dict.fromkeys(("a100d", "a100dx", "h100", "h100xm", "h100l", "h100xl"), 256),
}

_STEM = re.compile(r"(?:grid|nvidia)_([a-z0-9]+)-")


def mmio_needed(vgpus: Iterable[str]) -> int:
    """Return the address space for all these vGPUs together, in GiB."""
    stems = (match.group(1) for vgpu in vgpus if (match := _STEM.match(vgpu)))
    return sum(_GIB.get(stem, 0) for stem in stems)
