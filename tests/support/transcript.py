"""NVIDIA's tables as `tests/data` transcribes them. The product's and the simulator's copies are compared with them."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parents[1] / "data"

Counts = dict[int, int]
Starts = tuple[int, ...]


class Instance(NamedTuple):
    """A GPU instance on a card: how many of it there are at most, its width in memory slices, where it may begin."""

    most: int
    width: int
    starts: Starts


class Card(NamedTuple):
    """One row of the types. `same`, `q_only` and `mixed` map a size in GB to the most on one card."""

    prefix: str
    stems: tuple[str, ...]
    series: str
    same: Counts
    q_only: Counts
    mixed: Counts
    mig: dict[str, Instance]

    @property
    def gb(self) -> int:
        return max(self.same)


def as_of(document: str) -> date:
    """Return the day that a document's transcript is of."""
    (day,) = re.findall(r"^A transcript as of (\d{4}-\d\d-\d\d)\.", (DATA / document).read_text(encoding="utf-8"), re.M)
    return date.fromisoformat(day)


def rows(document: str, chapter: str) -> list[list[str]]:
    """Return the cells of a chapter's table, without remarks in brackets."""
    _, _, rest = (DATA / document).read_text(encoding="utf-8").partition(f"\n## {chapter}\n")
    lines = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("|")]
    found = [[re.sub(r" \([^)]*\)", "", cell).strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert found, f"{document} has no table {chapter}"
    return found


def counts(cell: str) -> Counts:
    return {int(size): int(most) for size, _, most in (word.partition(":") for word in cell.split())}


def starts(cell: str) -> Starts:
    return tuple(int(number) for number in re.findall("[0-9]+", cell))


SHAPES = {
    (int(of), int(compute), int(most)): Instance(
        int(most), int(places.partition(":")[2]), starts(places.partition(":")[0])
    )
    for of, compute, most, places in rows("mig-guide.md", "Placements")
}


def instances(cell: str) -> dict[str, Instance]:
    """The first of a row has all compute slices of the card."""
    found = re.findall(r"(([0-9])-[0-9]+):([0-9])", cell)
    return {name: SHAPES[int(found[0][1]), int(compute), int(most)] for name, compute, most in found}


CARDS = {
    name: Card(prefix, tuple(stems.split()), series, counts(same), counts(q_only), counts(mixed), instances(mig))
    for name, prefix, stems, series, same, q_only, mixed, mig in rows("vgpu-guides.md", "Virtual GPU types")
}

PLACES: dict[int, dict[int, Starts]] = {}
for _card, _vgpu, _places in rows("vgpu-guides.md", "Places in mixed size"):
    PLACES.setdefault(int(_card), {})[int(_vgpu)] = starts(_places)

STEMS = {name: card.stems for name, card in CARDS.items()} | {
    name: tuple(stems.split()) for name, _, stems in rows("vgpu-guides.md", "Cards whose types are not transcribed")
}

#: By card: GB for each of its vGPUs. Those that are missing need less than 64.
ADDRESS_SPACE = {
    name: int(gb) for gb, names in rows("vgpu-guides.md", "Address space") for name in re.split(", *", names)
}
