"""Card models as data: what one physical GPU of a kind offers. Written from NVIDIA's tables, never from formulas."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

GIB_IN_MIB = 1024


class CardMode(StrEnum):
    """How a card is shared. MIG is a mode of the card itself; vSphere knows the other two."""

    SAME_SIZE = "sameSize"
    MIXED_SIZE = "mixedSize"
    MIG = "mig"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardModel:
    """`same_size` maps each vGPU type to the most of it that one card holds."""

    name: str
    device_name: str
    device_id: int
    frame_mib: int
    same_size: dict[str, int] = field(hash=False)


def _v100_16() -> CardModel:
    return CardModel(
        name="V100-16",
        device_name="NVIDIA Tesla V100-PCIE-16GB",
        device_id=0x1DB4,
        frame_mib=16 * GIB_IN_MIB,
        same_size={f"grid_v100-{gb}q": 16 // gb for gb in (1, 2, 4, 8, 16)},
    )


MODELS: dict[str, CardModel] = {model.name: model for model in (_v100_16(),)}
