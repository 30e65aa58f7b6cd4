"""The rules of one card: which vGPU types it takes, and how many more of each beside those it holds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from vgpuctl.model.hosts import Card, CardMode, TypeFacts
from vgpuctl.planning.cards.boards import BY_NAME, BY_STEM, MIXED_PLACES, Board, VgpuType, board_of_card, type_of

#: The most vGPUs of any type on one card. No table of NVIDIA's goes beyond this count, so it is taken as a limit
#: (inferred).
MOST_OF_ALL = 32
#: NVIDIA MIG user guide: the largest GPU instance of a card has seven compute slices (four on an A30).
COMPUTE_SLICES = 7


class CardKind(NamedTuple):
    """Everything about a card that decides what it takes. Cards of equal kind are interchangeable.

    `board` is "" if no table knows the card. `type_facts`: facts about vGPU types that their names may not say.
    """

    family: str
    board: str
    gib: int
    mode: CardMode
    type_facts: tuple[TypeFacts, ...] = ()


class Slice(NamedTuple):
    """How a card takes one vGPU: its width (GB, or memory slices in MIG), and the most of its kind at a time.

    `starts`: where it may begin; empty if the mode knows no places, or if NVIDIA documents none.
    """

    width: int
    most: int
    starts: tuple[int, ...] = ()


class Load(NamedTuple):
    """A card with what it holds: `held` stays, `leaving` is on the card now and goes before long."""

    kind: CardKind
    held: tuple[Slice, ...] = ()
    leaving: tuple[Slice, ...] = ()

    @property
    def begun(self) -> bool:
        return bool(self.held or self.leaving)

    def room(self, vgpu: str) -> int:
        """Return how many more vGPUs of this type certainly fit, whatever places the others have on the card."""
        piece = slice_of(self.kind, vgpu)
        return 0 if piece is None else _room(self.kind, self.held + self.leaving, piece)

    def may_take(self, vgpu: str) -> bool:
        """True if one more vGPU of this type may fit.

        This is weaker than `room` only where places matter: the others may have places that leave room for it.
        """
        piece = slice_of(self.kind, vgpu)
        if piece is None:
            return False
        there = self.held + self.leaving
        return _room(self.kind, there, piece) > 0 or (bool(piece.starts) and _can_share(tuple(sorted((*there, piece)))))

    def with_one(self, vgpu: str, *, leaves: bool = False) -> Load:
        """Return the load with one vGPU more.

        A vGPU that our tables do not allow here, but that is here, leaves no room.
        """
        piece = slice_of(self.kind, vgpu) or Slice(self.kind.gib, 0)
        if leaves:
            return Load(self.kind, self.held, tuple(sorted((*self.leaving, piece))))
        return Load(self.kind, tuple(sorted((*self.held, piece))), self.leaving)

    def later(self) -> Load:
        """Return the load as it is once the leaving vGPUs are gone."""
        # vSphere 9 counts only powered-on VMs as used capacity, so a suspended VM has freed its frame (inferred).
        return Load(self.kind, self.held) if self.leaving else self

    def lawful(self) -> bool:
        """True if these vGPUs could all have been started on this card, one after another."""
        there = self.held + self.leaving
        if not all(piece.most for piece in there):
            return False
        if any(piece.starts for piece in there):
            return _can_share(tuple(sorted(there)))
        return all(_room(self.kind, there[:index], piece) > 0 for index, piece in enumerate(there))


@lru_cache(maxsize=4096)
def _kind(model: str, frame_mib: int, mode: CardMode, type_facts: tuple[TypeFacts, ...]) -> CardKind:
    gib = round(frame_mib / 1024)
    family, _, size = model.rpartition("-")
    family = family if size.isdigit() and family else model
    board = board_of_card(family.upper(), gib)
    return CardKind(family, board.name if board else "", board.gib if board else gib, mode, type_facts)


def kind_of(card: Card) -> CardKind:
    return _kind(card.model, card.frame_mib, card.mode, card.type_facts)


def frame_gib(cards: Iterable[Card], vgpu: str) -> int | None:
    """Return the frame that a vGPU of this type takes on one of these cards of one host; None if it is not known."""
    return type_of(vgpu, next((card.type_facts for card in cards), ())).gib


def filling(kind: CardKind) -> Slice:
    """Return a slice that leaves no room for anything else."""
    return Slice(kind.gib, 1)


@lru_cache(maxsize=65536)
def slice_of(kind: CardKind, vgpu: str) -> Slice | None:
    """Return how a card of this kind takes this type; None if it does not take the type."""
    named = type_of(vgpu, kind.type_facts)
    if not _of_this_board(kind, named):
        return None
    # What is not known is taken at its worst: a vGPU of unknown size fills its card (architecture.md, Placement).
    if named.gib is None:
        return filling(kind) if kind.mode is not CardMode.MIG else None
    # NVIDIA: a type with a slice count is a GPU instance, which only a card in MIG mode has.
    # Since ESXi 9.0.1, one instance may hold several time-sliced vGPUs; that is not reckoned with here.
    if bool(named.instance) != (kind.mode is CardMode.MIG) or named.gib > kind.gib:
        return None
    board = BY_NAME.get(kind.board) or BY_STEM.get(named.stem)
    if named.instance:
        return _instance(kind, board, named)
    return _piece(kind, board, named, named.gib)


def _of_this_board(kind: CardKind, named: VgpuType) -> bool:
    """True if the type belongs to this kind of card, judged by the type's stem.

    A stem that no table knows may belong to a family whose name it begins with, or to a card that no table knows.
    """
    # NVIDIA: a stem stands for board and memory: `v100` is a V100 with 16 GB, `v100d` one with 32 GB.
    board = BY_STEM.get(named.stem)
    if kind.board:
        return board.name == kind.board if board else named.stem.startswith(kind.family.lower())
    return board is None or abs(board.gib - kind.gib) * 10 <= board.gib


def _piece(kind: CardKind, board: Board | None, named: VgpuType, gib: int) -> Slice | None:
    """Return the slice of a time-sliced vGPU: by the table, or by whole division if no table knows it."""
    # NVIDIA's counts follow no formula (A100-40: ten of 4 GB in same size, eight in mixed size), so tables come first.
    if board is None:
        return _divided(kind, gib)
    compute = named.series.startswith("c")
    if not compute and board.compute_only:
        return None
    # NVIDIA vGPU guide: some sizes exist in series Q alone, such as 1 and 2 GB on a V100.
    most = _table(kind, board, named).get(gib)
    if most is None:
        return None if compute and gib in board.q_only else _divided(kind, gib)
    return Slice(gib, most, MIXED_PLACES.get(board.gib, {}).get(gib, ()) if _mixes(kind) else ())


def _table(kind: CardKind, board: Board, named: VgpuType) -> dict[int, int]:
    # NVIDIA vGPU guide: in mixed size a card holds fewer vGPUs of some sizes (L4, 8 GB: two instead of three).
    if _mixes(kind):
        return dict(board.mixed)
    return {**board.same, **board.q_only} if named.series == "q" else dict(board.same)


def _mixes(kind: CardKind) -> bool:
    """True if the card takes several sizes. Older boards know the same size only, whatever the host is set to."""
    board = BY_NAME.get(kind.board)
    # vSphere 8.0 U3: mixed size needs a board of Ampere or newer; V100 and T4 do not support it.
    return kind.mode is CardMode.MIXED_SIZE and (board is None or bool(board.mixed))


def _divided(kind: CardKind, gib: int) -> Slice:
    return Slice(gib, min(kind.gib // gib, MOST_OF_ALL)) if gib else filling(kind)


def _instance(kind: CardKind, board: Board | None, named: VgpuType) -> Slice:
    """Return the slice of a GPU instance. A card has only one instance with media extensions (`me` in the series)."""
    place = board.instances.get(named.instance) if board else None
    if place:
        return Slice(place.width, 1 if "me" in named.series else len(place.starts), place.starts)
    # An instance that is not in NVIDIA's table of this board is taken at its worst: it fills the card.
    if board and board.instances:
        return filling(kind)
    gib = named.gib or kind.gib
    return Slice(gib, min(kind.gib // gib, COMPUTE_SLICES // int(named.instance[0])))


def assumption(card: Card, vgpu: str) -> str:
    """Return what is assumed of this type on this card; "" if a table knows it there, or if it does not fit."""
    kind, named = kind_of(card), type_of(vgpu, card.type_facts)
    piece = slice_of(kind, vgpu)
    if piece is None or _known(kind, named):
        return ""
    if piece == filling(kind):
        return f"{vgpu} on {card.model}: its frame is not known; it is taken to fill the card"
    return f"{vgpu} on {card.model}: in no table, taken as {kind.gib} GB ÷ {named.gib} GB, at most {piece.most} a card"


def _known(kind: CardKind, named: VgpuType) -> bool:
    board = BY_NAME.get(kind.board)
    if board is None or named.stem not in board.stems:
        return False
    return named.instance in board.instances if named.instance else named.gib in _table(kind, board, named)


@lru_cache(maxsize=65536)
def _room(kind: CardKind, there: tuple[Slice, ...], piece: Slice) -> int:
    if kind.mode is not CardMode.MIG and not _mixes(kind):
        # NVIDIA, same size: the first VM fixes the card's size until all its VMs are off or suspended.
        # VMware's blog of 2024-07-03: before vSphere 8.0 U2, such a card also held one series only (C or Q).
        alike = all(other.width == piece.width for other in there)
        return max(0, piece.most - len(there)) if alike else 0
    if piece.starts:
        # No host reports a vGPU's place on its card, so each one blocks as many places as it can (architecture.md).
        free = len(piece.starts) - sum(_blocked(other, piece) for other in there)
    else:
        free = (kind.gib - sum(other.width for other in there)) // piece.width
    return max(0, min(free, piece.most - sum(other.width == piece.width for other in there)))


@lru_cache(maxsize=4096)
def _blocked(other: Slice, piece: Slice) -> int:
    """Return the most places of `piece` that one `other` can take away, wherever it is."""
    if not other.starts:
        return len(piece.starts)
    return max(sum(s < o + other.width and o < s + piece.width for s in piece.starts) for o in other.starts)


@lru_cache(maxsize=65536)
def _can_share(pieces: tuple[Slice, ...], taken: int = 0) -> bool:
    """True if one card has places for all these slices. They are sorted by width; the widest is placed first."""
    if not pieces:
        return True
    free = [bits for bits in _bits(pieces[-1]) if not bits & taken]
    return any(_can_share(pieces[:-1], taken | bits) for bits in free)


@lru_cache(maxsize=4096)
def _bits(piece: Slice) -> tuple[int, ...]:
    """Return the slots of each of its places as bits. A slice without places takes all slots."""
    return tuple(((1 << piece.width) - 1) << start for start in piece.starts) or (-1,)
