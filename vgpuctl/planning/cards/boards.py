"""NVIDIA's boards: their vGPU types, and how many of each type one card holds.

Sources for the counts: the user guides of NVIDIA vGPU and of NVIDIA AI Enterprise. For the places in mixed size: the
appendix "vGPU Placements for GPUs in Mixed-Size Mode" of the latter. For the places of GPU instances: the MIG user
guide, `nvidia-smi mig -lgipp`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

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

    @property
    def memory_slices(self) -> int:
        return max((start + place.width for place in self.instances.values() for start in place.starts), default=0)


# NVIDIA vGPU guides: `grid_v100d-4q`. In MIG, the compute slices come before the size: `nvidia_a100-3-20c`.
# The stem (`v100d`) stands for the board and its memory, so it is looked up and never built.
_NAME = re.compile(r"(?:grid_|nvidia_)?(?P<stem>.+?)-(?:(?P<slices>[0-9])-)?(?P<gib>[0-9]{1,5})(?P<series>[a-z]+)")

_V100 = "16:1 8:2 4:4"
_A100_80 = "80:1 40:2 20:4 16:5→4 10:8 8:10→8 4:20→16"
_OF_24 = "24:1 12:2 8:3→2 6:4 4:6→4"
_OF_48 = "48:1 24:2 16:3→2 12:4 8:6→4 6:8 4:12→8"
_H200 = "141:1 70:2 35:4 28:5 17:8 14:10 8:16 7:20 4:32"
_MIG_80 = "7-80:1 4-40:1 3-40:2 2-20:3 1-20:4 1-10:7"

# The columns: name; how device names begin; stems; GB:count, where →n is the lower count in mixed size; whether the
# board knows mixed size, and C if it has no other series; GB:count of series Q alone; instances of MIG.
_ROWS = f"""
P100-16 | P100       | p100               | {_V100}                                   |         | 2:8 1:16  |
V100-16 | V100       | v100 v100x v100l   | {_V100}                                   |         | 2:8 1:16  |
T4      | T4         | t4                 | {_V100}                                   |         | 2:8 1:16  |
V100-32 | V100 V100S | v100d v100dx v100s | 32:1 16:2 8:4 4:8                         |         | 2:16 1:32 |
A100-40 | A100       | a100 a100x         | 40:1 20:2 10:4 8:5→4 5:8 4:10→8           | mixed C |           | 7-40:1 4-20:1 3-20:2 2-10:3 1-10:4 1-5:7
A100-80 | A100       | a100d a100dx       | {_A100_80}                                | mixed C |           | {_MIG_80}
A30     | A30        | a30                | {_OF_24}                                  | mixed C |           | 4-24:1 2-12:2 1-6:4
L4      | L4         | l4                 | {_OF_24}                                  | mixed   |           |
A40     | A40        | a40                | {_OF_48}                                  | mixed   |           |
L40     | L40        | l40                | {_OF_48}                                  | mixed   |           |
L40S    | L40S       | l40s               | {_OF_48}                                  | mixed   |           |
H100-80 | H100       | h100 h100xm        | {_A100_80} 5:16                           | mixed C |           | {_MIG_80}
H100-94 | H100       | h100l h100xl       | 94:1 47:2 23:4 15:6→4 11:8 6:15→8 4:23→16 | mixed C |           | 7-94:1 4-47:1 3-47:2 2-24:3 1-24:4 1-12:7
H200    | H200       | h200               | {_H200}                                   | mixed C |           | 7-141:1 4-71:1 3-71:2 2-35:3 1-35:4 1-18:7
"""  # noqa: E501

# For each card size in GB: each vGPU size, and where such a vGPU may begin in mixed size. For 141 GB NVIDIA documents
# no places.
_PLACES = {
    24: "24:0 12:0,12 8:0,16 6:0,6,12,18 4:0,8,12,20",
    40: "40:0 20:0,20 10:0,10,20,30 8:0,12,20,32 5:0,5,10,15,20,25,30,35 4:0,6,10,16,20,26,30,36",
    48: "48:0 24:0,24 16:0,32 12:0,12,24,36 8:0,16,24,40 6:0,6,12,18,24,30,36,42 4:0,8,12,20,24,32,36,44",
    80: "80:0 40:0,40 20:0,20,40,60 16:0,24,40,64 10:0,10,20,30,40,50,60,70 8:0,12,20,32,40,52,60,72 "
    "5:0,5,10,15,20,25,30,35,40,45,50,55,60,65,70,75 4:0,6,10,16,20,26,30,36,40,46,50,56,60,66,70,76",
    94: "94:0 47:0,47 23:0,24,47,71 15:0,32,47,79 11:0,12,23,36,47,59,70,83 6:0,17,23,41,47,64,70,88 "
    "4:0,7,11,19,23,31,35,43,47,54,58,66,70,78,82,90",
}

# Compute slices and count → the place of such an instance among the card's memory slices.
_INSTANCES = {
    "7:1": InstanceShape(8, (0,)),
    "4:1": InstanceShape(4, (0,)),
    "3:2": InstanceShape(4, (0, 4)),
    "2:3": InstanceShape(2, (0, 2, 4)),
    "2:2": InstanceShape(2, (0, 2)),
    "1:7": InstanceShape(1, (0, 1, 2, 3, 4, 5, 6)),
    "1:4": InstanceShape(2, (0, 2, 4, 6)),
}
_OF_FOUR_SLICES = _INSTANCES | {"1:4": InstanceShape(1, (0, 1, 2, 3))}


def _board(row: str) -> Board:
    name, families, stems, counts, mixed, q_only, instances = (cell.strip() for cell in row.split("|"))
    return Board(
        name=name,
        families=tuple(families.split()),
        stems=tuple(stems.split()),
        gib=max(size for size, _ in _counts(counts, 0)),
        compute_only="C" in mixed,
        same=dict(_counts(counts, 0)),
        q_only=dict(_counts(q_only, 0)),
        mixed=dict(_counts(counts, -1)) if mixed else {},
        instances=dict(_instances(instances)),
    )


def _counts(cell: str, which: int) -> Iterator[tuple[int, int]]:
    """Yield each size with its count. `which`: 0 for the count before the arrow, -1 for the count behind it."""
    for word in cell.split():
        size, _, most = word.partition(":")
        yield int(size), int(most.split("→")[which])


def _instances(cell: str) -> Iterator[tuple[str, InstanceShape]]:
    places = _OF_FOUR_SLICES if cell.startswith("4-24") else _INSTANCES
    for word in cell.split():
        instance, _, most = word.partition(":")
        yield instance, places[f"{instance.partition('-')[0]}:{most}"]


BOARDS = tuple(_board(row) for row in _ROWS.strip().splitlines())
BY_NAME = {board.name: board for board in BOARDS}
BY_STEM = {stem: board for board in BOARDS for stem in board.stems}


def _places(cell: str) -> Iterator[tuple[int, tuple[int, ...]]]:
    for word in cell.split():
        size, _, starts = word.partition(":")
        yield int(size), tuple(map(int, starts.split(",")))


MIXED_PLACES = {gib: dict(_places(cell)) for gib, cell in _PLACES.items()}


@lru_cache(maxsize=4096)
def type_of(vgpu: str, told: tuple[TypeFacts, ...] = ()) -> VgpuType:
    """Return the type as its name describes it. What a file or a host says (`told`) counts before the name."""
    # Three sources, one answer: the file, else a host (vSphere 7.0.3), else the name (architecture.md, Placement).
    named = _named(vgpu)
    said = next((each for each in told if each.vgpu == vgpu), TypeFacts(vgpu))
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
