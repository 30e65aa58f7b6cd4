"""Card models: what one physical GPU of a kind offers in each mode. Read from tables, never built by formulas.

The tables are data, `card_tables/*.toml`, which name their own sources. The product has tables of its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

GIB_IN_MIB = 1024


class CardMode(StrEnum):
    """How a card is shared. MIG is a mode of the card itself; vSphere's settings know the other two."""

    SAME_SIZE = "sameSize"
    MIXED_SIZE = "mixedSize"
    MIG = "mig"


@dataclass(frozen=True, slots=True)
class Offer:
    """How a card in one mode takes one vGPU type: at most `most`, each `width` slots wide.

    A slot is a GB of frame, or a memory slice in MIG. `places`: where one may begin; empty where nothing is
    documented, or where the mode knows no places.
    """

    frame_gb: int
    most: int
    width: int
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CardModel:
    """`offers`: by mode, then by vGPU type. A mode that the card does not have is missing."""

    name: str
    device_name: str
    device_id: int
    frame_mib: int
    offers: dict[CardMode, dict[str, Offer]] = field(hash=False)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "card_tables" / name).read_text(encoding="utf-8"))


def _model(name: str, card: Mapping[str, Any]) -> CardModel:
    offers = {
        # NVIDIA: counts in mixed size are lower than in same size, and some cards have no mixed size at all.
        CardMode.SAME_SIZE: {vgpu: Offer(gb, size["same"], gb) for vgpu, gb, size in _sizes(card)},
        CardMode.MIXED_SIZE: {vgpu: _mixed(gb, size["mixed"]) for vgpu, gb, size in _sizes(card) if "mixed" in size},
        CardMode.MIG: dict(_mig(card)),
    }
    return CardModel(
        name=name,
        device_name=card["device"],
        device_id=card["device-id"],
        frame_mib=card["frame-gb"] * GIB_IN_MIB,
        offers={mode: types for mode, types in offers.items() if types},
    )


def _sizes(card: Mapping[str, Any]) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield each time-sliced type with its size and its line of the table, the smallest first."""
    for letter in card["series"]:
        for gb, size in sorted((int(gb), size) for gb, size in card["gb"].items()):
            if letter in size.get("series", card["series"]):
                yield f"{card['stem']}-{gb}{letter}", gb, size


def _mixed(gb: int, places: list[int] | int) -> Offer:
    # NVIDIA documents no places for H200, only counts.
    if isinstance(places, int):
        return Offer(gb, places, gb)
    return Offer(gb, len(places), gb, tuple(places))


def _mig(card: Mapping[str, Any]) -> Iterator[tuple[str, Offer]]:
    """MIG types are of series C."""
    for instance, shape in card.get("mig", {}).items():
        width, places = MIG_SHAPES[shape]["width"], tuple(MIG_SHAPES[shape]["places"])
        # NVIDIA: a MIG type names its slices and its GB, such as nvidia_a100-3-20c.
        yield f"{card['stem']}-{instance}c", Offer(int(instance.partition("-")[2]), len(places), width, places)


MIG_SHAPES: dict[str, Any] = _table("mig-shapes.toml")["shapes"]
_CARDS: dict[str, Any] = _table("vgpu-types.toml")["cards"]
MODELS: dict[str, CardModel] = {name: _model(name, card) for name, card in _CARDS.items()}
#: Address space in GB that a VM's settings must have for each vGPU of these boards, by their stems.
MMIO_GB: dict[str, int] = {card["stem"]: card.get("mmio-gb", 0) for card in _CARDS.values()}
