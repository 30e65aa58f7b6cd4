"""Card models: what one physical GPU of a kind offers in each mode. Built from tables, never from formulas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from vgpuctl.sim.card_tables import BOARDS, MIG_GEOMETRY, MIG_WIDE_SINGLE, MIXED_PLACES, Board, Geometry

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


def _model(board: Board) -> CardModel:
    offers = {
        CardMode.SAME_SIZE: dict(_same_size(board)),
        CardMode.MIXED_SIZE: dict(_mixed_size(board)),
        CardMode.MIG: dict(_mig(board)),
    }
    return CardModel(
        name=board.name,
        device_name=board.device_name,
        device_id=board.device_id,
        frame_mib=board.frame_gb * GIB_IN_MIB,
        offers={mode: types for mode, types in offers.items() if types},
    )


def _same_size(board: Board) -> Iterator[tuple[str, Offer]]:
    for series in board.series:
        rows = f"{board.same_size} {board.q_alone}" if series == "q" else board.same_size
        for size, most in sorted(_counts(rows), key=lambda row: int(row[0])):
            yield f"{board.stem}-{size}{series}", Offer(int(size), most, int(size))


def _mixed_size(board: Board) -> Iterator[tuple[str, Offer]]:
    places = MIXED_PLACES.get(board.frame_gb, {})
    for series in board.series:
        for size, most in sorted(_counts(board.mixed_size), key=lambda row: int(row[0])):
            offer = Offer(int(size), most, int(size), places.get(int(size), ()))
            yield f"{board.stem}-{size}{series}", offer


def _mig(board: Board) -> Iterator[tuple[str, Offer]]:
    """MIG types are of series C."""
    for name, most in _counts(board.mig):
        slices, _, size = name.partition("-")
        instance = _instance(board, int(slices), most)
        yield f"{board.stem}-{name}c", Offer(int(size), most, instance.width, instance.places)


def _instance(board: Board, slices: int, most: int) -> Geometry:
    """Two kinds of instance have one compute slice; the wide one is there four times, the narrow one seven times."""
    plain = MIG_GEOMETRY[board.memory_slices][slices]
    return plain if most == len(plain.places) else MIG_WIDE_SINGLE


def _counts(rows: str) -> Iterable[tuple[str, int]]:
    for row in rows.split():
        size, _, most = row.partition(":")
        yield size, int(most)


MODELS: dict[str, CardModel] = {board.name: _model(board) for board in BOARDS}
