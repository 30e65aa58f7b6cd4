"""How many vGPUs of one size a card holds: NVIDIA's tables, not formulas."""

from __future__ import annotations

from vgpuctl.model.fleet import Card
from vgpuctl.model.profiles import frame_gib

#: Frame buffer of the card in GiB → size of a vGPU in GiB → the most of that size (time-sliced, all of one size).
MOST: dict[int, dict[int, int]] = {
    16: {16: 1, 8: 2, 4: 4, 2: 8, 1: 16},
    24: {24: 1, 12: 2, 8: 3, 6: 4, 4: 6},
    32: {32: 1, 16: 2, 8: 4, 4: 8, 2: 16, 1: 32},
    40: {40: 1, 20: 2, 10: 4, 8: 5, 5: 8, 4: 10},
    48: {48: 1, 24: 2, 16: 3, 12: 4, 8: 6, 6: 8, 4: 12},
    80: {80: 1, 40: 2, 20: 4, 16: 5, 10: 8, 8: 10, 5: 16, 4: 20},
    94: {94: 1, 47: 2, 23: 4, 15: 6, 11: 8, 6: 15, 4: 23},
    141: {141: 1, 70: 2, 35: 4, 28: 5, 17: 8, 14: 10, 8: 16, 7: 20, 4: 32},
}


def most(card_gib: int, size_gib: int) -> int:
    """A card or size that is in no table: whole division, an assumption that vCenter has the last word on."""
    return MOST.get(card_gib, {}).get(size_gib, card_gib // size_gib)


def card_gib(card: Card) -> int:
    return round(card.frame_mib / 1024)


def size_of(vgpu: str, card: Card) -> int:
    """A vGPU whose name says no size is taken to fill the card."""
    return frame_gib(vgpu) or card_gib(card)
