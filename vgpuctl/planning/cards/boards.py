"""NVIDIA's boards: their vGPU types, how many of each type one card holds, and the address space that each needs.

The figures are data: `nvidia/vgpu-guides.toml` and `nvidia/mig-guide.toml`, which name their sources. They come with
the package and are read once, when this module is imported (4 ms); planning reads no other file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from vgpuctl.model.hosts import TypeFacts


class VgpuType(NamedTuple):
    """What is known of one vGPU type.

    `gib` is None if neither the name nor a file nor a host gives its size. `instance` is MIG's own name (`3-20`).
    """

    stem: str
    gib: int | None = None
    series: str = ""
    instance: str = ""


class InstanceShape(NamedTuple):
    """The shape of a GPU instance: its width in memory slices, and the slices where it may begin."""

    width: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """One of NVIDIA's boards, with the most vGPUs of each size that a card of this kind holds.

    `same`, `q_only` and `mixed` map a size in GB to that count; `q_only` adds sizes that only series Q has.
    `compute_only`: the board has no series but C.
    """

    name: str
    families: tuple[str, ...]
    stems: tuple[str, ...]
    gib: int
    compute_only: bool = False
    same: Mapping[int, int] = field(default_factory=dict)
    q_only: Mapping[int, int] = field(default_factory=dict)
    mixed: Mapping[int, int] = field(default_factory=dict)
    instances: Mapping[str, InstanceShape] = field(default_factory=dict)


# NVIDIA vGPU guides: `grid_v100d-4q`. In MIG, the compute slices come before the size: `nvidia_a100-3-20c`.
# The stem (`v100d`) stands for the board and its memory, so it is looked up and never built.
_NAME = re.compile(r"(?:grid_|nvidia_)?(?P<stem>.+?)-(?:(?P<slices>[0-9])-)?(?P<gib>[0-9]{1,5})(?P<series>[a-z]+)")


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "nvidia" / name).read_text(encoding="utf-8"))


_GUIDES = _table("vgpu-guides.toml")


def _board(name: str, card: Mapping[str, Any]) -> Board:
    same = _by_size(card["same-size"])
    return Board(
        name=name,
        families=tuple(card["device-names"]),
        stems=tuple(card["stems"]),
        gib=max(same),
        compute_only=card.get("series") == "C",
        same=same,
        q_only=_by_size(card.get("q-only", {})),
        mixed=_by_size(card.get("mixed-size", {})),
        instances=_instances(card.get("mig", {})),
    )


def _by_size(row: Mapping[str, int]) -> dict[int, int]:
    """Return the row with its sizes as numbers. A key of TOML is always text."""
    return {int(size): most for size, most in row.items()}


def _instances(row: Mapping[str, int]) -> dict[str, InstanceShape]:
    """Return the shape of each GPU instance. The largest one has all compute slices of the card."""
    compute = {instance: int(instance.partition("-")[0]) for instance in row}
    return {instance: SHAPES[max(compute.values()), compute[instance], most] for instance, most in row.items()}


#: By the compute slices of the card, those of the instance, and how many of it one card holds.
SHAPES = {
    (int(of), each["compute"], len(each["starts"])): InstanceShape(each["width"], tuple(each["starts"]))
    for of, shapes in _table("mig-guide.toml")["cards-of"].items()
    for each in shapes
}
BOARDS = tuple(_board(name, card) for name, card in _GUIDES["cards"].items() if "same-size" in card)
BY_NAME = {board.name: board for board in BOARDS}
BY_STEM = {stem: board for board in BOARDS for stem in board.stems}
MIXED_PLACES = {
    int(gib): {int(size): tuple(starts) for size, starts in places.items()}
    for gib, places in _GUIDES["places-in-mixed-size"].items()
}
#: GiB for each vGPU, by the stem of its type. Cards that are missing here need less than 64, as far as we know.
ADDRESS_SPACE_GIB = {stem: card.get("address-space", 0) for card in _GUIDES["cards"].values() for stem in card["stems"]}


@lru_cache(maxsize=4096)
def type_of(vgpu: str, type_facts: tuple[TypeFacts, ...] = ()) -> VgpuType:
    """Return the type as its name describes it. What a file or a host says (`type_facts`) counts before the name."""
    # Three sources, one answer: the file, else a host (vSphere 7.0.3), else the name (architecture.md, Placement).
    named = _named(vgpu)
    said = next((each for each in type_facts if each.vgpu == vgpu), TypeFacts(vgpu))
    return named._replace(gib=said.gib or named.gib, series=said.series or named.series)


def _named(vgpu: str) -> VgpuType:
    found = _NAME.fullmatch(vgpu.lower())
    if found is None:
        return VgpuType(vgpu.lower().removeprefix("grid_").removeprefix("nvidia_").partition("-")[0])
    slices, gib = found["slices"], int(found["gib"])
    return VgpuType(found["stem"], gib, found["series"], f"{slices}-{gib}" if slices else "")


def board_of_card(family: str, gib: int) -> Board | None:
    """Return the board nearest in size, within a tenth.

    For ECC and the driver, cards report a little less than their frame.
    """
    # Board names repeat with other memory (NVIDIA: A100 with 40 and with 80 GB), so the frame decides.
    near = [board for board in BOARDS if family in board.families and abs(board.gib - gib) * 10 <= board.gib]
    return min(near, key=lambda board: abs(board.gib - gib), default=None)
