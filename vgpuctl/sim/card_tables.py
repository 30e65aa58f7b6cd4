"""NVIDIA's vGPU tables, as written. Sizes are GB of frame; a count is the most that one card holds.

Counts and types: NVIDIA vGPU and AI Enterprise user guides. Places in mixed size: the AI Enterprise user guide's
appendix "vGPU Placements for GPUs in Mixed-Size Mode"; for 48 GB that table's lines as F. Denneman's catalogue of
vGPU placements repeats them. Places of GPU instances: MIG user guide, `nvidia-smi mig -lgipp`.
"""

from __future__ import annotations

from typing import NamedTuple


class Board(NamedTuple):
    """One row: `series` are the letters at the end of its types' names, `q_alone` what only series Q has besides."""

    name: str
    device_name: str
    device_id: int
    stem: str
    frame_gb: int
    series: str
    same_size: str
    q_alone: str = ""
    mixed_size: str = ""
    mig: str = ""
    memory_slices: int = 8


_A100_80 = "80:1 40:2 20:4 16:5 10:8 8:10 4:20"
_A100_80_MIXED = "80:1 40:2 20:4 16:4 10:8 8:8 4:16"
_MIG_80 = "7-80:1 4-40:1 3-40:2 2-20:3 1-20:4 1-10:7"
_24 = "24:1 12:2 8:3 6:4 4:6"
_24_MIXED = "24:1 12:2 8:2 6:4 4:4"
_48 = "48:1 24:2 16:3 12:4 8:6 6:8 4:12"
_48_MIXED = "48:1 24:2 16:2 12:4 8:4 6:8 4:8"
_H200 = "141:1 70:2 35:4 28:5 17:8 14:10 8:16 7:20 4:32"

BOARDS = (
    Board("P100-16", "NVIDIA Tesla P100-PCIE-16GB", 0x15F8, "grid_p100", 16, "qc", "16:1 8:2 4:4", "2:8 1:16"),
    Board("V100-16", "NVIDIA Tesla V100-PCIE-16GB", 0x1DB4, "grid_v100", 16, "qc", "16:1 8:2 4:4", "2:8 1:16"),
    Board("V100-32", "NVIDIA Tesla V100-PCIE-32GB", 0x1DB6, "grid_v100d", 32, "qc", "32:1 16:2 8:4 4:8", "2:16 1:32"),
    Board("T4", "NVIDIA Tesla T4", 0x1EB8, "grid_t4", 16, "qc", "16:1 8:2 4:4", "2:8 1:16"),
    Board(
        "A100-40",
        "NVIDIA A100-PCIE-40GB",
        0x20F1,
        "nvidia_a100",
        40,
        "c",
        same_size="40:1 20:2 10:4 8:5 5:8 4:10",
        mixed_size="40:1 20:2 10:4 8:4 5:8 4:8",
        mig="7-40:1 4-20:1 3-20:2 2-10:3 1-10:4 1-5:7",
    ),
    Board(
        "A100-80",
        "NVIDIA A100 80GB PCIe",
        0x20B5,
        "nvidia_a100d",
        80,
        "c",
        same_size=_A100_80,
        mixed_size=_A100_80_MIXED,
        mig=_MIG_80,
    ),
    Board(
        "A30",
        "NVIDIA A30",
        0x20B7,
        "nvidia_a30",
        24,
        "c",
        same_size=_24,
        mixed_size=_24_MIXED,
        mig="4-24:1 2-12:2 1-6:4",
        memory_slices=4,
    ),
    Board("L4", "NVIDIA L4", 0x27B8, "nvidia_l4", 24, "qc", same_size=_24, mixed_size=_24_MIXED),
    Board("A40", "NVIDIA A40", 0x2235, "nvidia_a40", 48, "qc", same_size=_48, mixed_size=_48_MIXED),
    Board("L40", "NVIDIA L40", 0x26B5, "nvidia_l40", 48, "qc", same_size=_48, mixed_size=_48_MIXED),
    Board("L40S", "NVIDIA L40S", 0x26B9, "nvidia_l40s", 48, "qc", same_size=_48, mixed_size=_48_MIXED),
    Board(
        "H100-80",
        "NVIDIA H100 PCIe",
        0x2331,
        "nvidia_h100",
        80,
        "c",
        same_size=f"{_A100_80} 5:16",
        mixed_size=f"{_A100_80_MIXED} 5:16",
        mig=_MIG_80,
    ),
    Board(
        "H100-94",
        "NVIDIA H100 NVL",
        0x2321,
        "nvidia_h100l",
        94,
        "c",
        same_size="94:1 47:2 23:4 15:6 11:8 6:15 4:23",
        mixed_size="94:1 47:2 23:4 15:4 11:8 6:8 4:16",
        mig="7-94:1 4-47:1 3-47:2 2-24:3 1-24:4 1-12:7",
    ),
    Board(
        "H200",
        "NVIDIA H200 NVL",
        0x233B,
        "nvidia_h200",
        141,
        "c",
        same_size=_H200,
        mixed_size=_H200,
        mig="7-141:1 4-71:1 3-71:2 2-35:3 1-35:4 1-18:7",
    ),
)

MIXED_PLACES: dict[int, dict[int, tuple[int, ...]]] = {
    24: {
        24: (0,),
        12: (0, 12),
        8: (0, 16),
        6: (0, 6, 12, 18),
        4: (0, 8, 12, 20),
    },
    40: {
        40: (0,),
        20: (0, 20),
        10: (0, 10, 20, 30),
        8: (0, 12, 20, 32),
        5: (0, 5, 10, 15, 20, 25, 30, 35),
        4: (0, 6, 10, 16, 20, 26, 30, 36),
    },
    48: {
        48: (0,),
        24: (0, 24),
        16: (0, 32),
        12: (0, 12, 24, 36),
        8: (0, 16, 24, 40),
        6: (0, 6, 12, 18, 24, 30, 36, 42),
        4: (0, 8, 12, 20, 24, 32, 36, 44),
    },
    80: {
        80: (0,),
        40: (0, 40),
        20: (0, 20, 40, 60),
        16: (0, 24, 40, 64),
        10: (0, 10, 20, 30, 40, 50, 60, 70),
        8: (0, 12, 20, 32, 40, 52, 60, 72),
        5: (0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75),
        4: (0, 6, 10, 16, 20, 26, 30, 36, 40, 46, 50, 56, 60, 66, 70, 76),
    },
    94: {
        94: (0,),
        47: (0, 47),
        23: (0, 24, 47, 71),
        15: (0, 32, 47, 79),
        11: (0, 12, 23, 36, 47, 59, 70, 83),
        6: (0, 17, 23, 41, 47, 64, 70, 88),
        4: (0, 7, 11, 19, 23, 31, 35, 43, 47, 54, 58, 66, 70, 78, 82, 90),
    },
}
"""By the card's frame, then the vGPU's: where one may begin. For 141 GB none are documented."""


class Geometry(NamedTuple):
    """A GPU instance: `width` memory slices wide, beginning at one of `places`."""

    width: int
    places: tuple[int, ...]


MIG_GEOMETRY: dict[int, dict[int, Geometry]] = {
    8: {
        7: Geometry(8, (0,)),
        4: Geometry(4, (0,)),
        3: Geometry(4, (0, 4)),
        2: Geometry(2, (0, 2, 4)),
        1: Geometry(1, (0, 1, 2, 3, 4, 5, 6)),
    },
    4: {
        4: Geometry(4, (0,)),
        2: Geometry(2, (0, 2)),
        1: Geometry(1, (0, 1, 2, 3)),
    },
}
"""By the card's memory slices, then the instance's compute slices."""

MIG_WIDE_SINGLE = Geometry(2, (0, 2, 4, 6))
"""One compute slice with two memory slices, as 1g.10gb on a card of 40 GB."""

#: Address space in GB that a VM's settings must have for each vGPU of these boards, by their stems.
MMIO_GB = {
    **dict.fromkeys(("grid_v100", "grid_v100d", "nvidia_a30"), 64),
    "nvidia_a100": 128,
    **dict.fromkeys(("nvidia_a100d", "nvidia_h100", "nvidia_h100l"), 256),
}
