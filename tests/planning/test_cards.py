"""Which types a card takes, and how many: the product's tables, the reckoning's and the simulator's are one truth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fleets import QUARTER, WHOLE
from tests.support.reckoning import types_of
from vgpuctl.model.hosts import Card, CardMode, TypeFacts
from vgpuctl.planning.cards.boards import type_of
from vgpuctl.planning.cards.card_rules import Load, assumption, frame_gib, kind_of, slice_of
from vgpuctl.sim.card_models import MODELS
from vgpuctl.sim.card_models import CardMode as SimulatedMode

MODES = {
    SimulatedMode.SAME_SIZE: (CardMode.SAME_SIZE, "sameSize"),
    SimulatedMode.MIXED_SIZE: (CardMode.MIXED_SIZE, "mixedSize"),
    SimulatedMode.MIG: (CardMode.MIG, "mig"),
}
EVERY_TYPE = sorted({name for model in MODELS.values() for offers in model.offers.values() for name in offers})


def card(model: str, mode: CardMode = CardMode.SAME_SIZE, frame_gib: float = 0) -> Card:
    """As vCenter's views name it: the first word of the device's name, and the frame."""
    size = round(frame_gib or MODELS[model].frame_mib / 1024)
    return Card(pci_id="0000:3b:00.0", model=f"{model.partition('-')[0]}-{size}", frame_mib=size * 1024, mode=mode)


def most(some: Card, vgpu: str) -> int:
    return Load(kind_of(some)).room(vgpu)


@pytest.mark.parametrize(
    ("model", "simulated"), [(name, mode) for name, model in MODELS.items() for mode in model.offers]
)
def test_all_three_tables_say_the_same(model: str, simulated: SimulatedMode) -> None:
    offers = MODELS[model].offers[simulated]
    mode, reckoned = MODES[simulated]
    ours = card(model, mode)
    for vgpu in EVERY_TYPE:
        piece = slice_of(kind_of(ours), vgpu)
        theirs = offers.get(vgpu)
        assert (piece is None) == (theirs is None), vgpu
        if piece and theirs:
            assert (piece.width, piece.most, piece.starts) == (theirs.width, theirs.most, theirs.places), vgpu
            assert piece == types_of(model, reckoned)[vgpu][1:], vgpu
            assert assumption(ours, vgpu) == ""


def test_what_is_told_of_a_type_counts_before_its_name() -> None:
    odd, v100 = "grid_v100-special", card("V100-16")
    assert most(v100, odd) == 1
    assert "its frame is not known; it is taken to fill the card" in assumption(v100, odd)
    told = replace(v100, told=(TypeFacts(odd, 4, "q"), TypeFacts(QUARTER, 8)))
    assert (most(told, odd), assumption(told, odd)) == (4, "")
    assert (most(told, QUARTER), most(v100, QUARTER)) == (2, 4)
    assert [frame_gib([some], odd) for some in (told, v100)] == [4, None]
    a100 = replace(card("A100-40"), told=(TypeFacts("nvidia_a100-own", 20, "q"),))
    assert most(a100, "nvidia_a100-own") == 0, "a board for compute alone takes no series Q"


@pytest.mark.parametrize(
    ("model", "mib", "board"),
    [
        ("L4-22", 23034, "L4"),
        ("A40-45", 46068, "A40"),
        ("T4-15", 15360, "T4"),
        ("A100-40", 40536, "A100-40"),
        ("H100-94", 95830, "H100-94"),
        ("H200-140", 143771, "H200"),
        ("V100S-32", 32768, "V100-32"),
        ("A10-24", 23028, ""),
        ("P100-12", 12288, ""),
    ],
)
def test_a_card_that_keeps_a_little_frame_for_itself_is_still_known(model: str, mib: int, board: str) -> None:
    assert kind_of(Card(pci_id="", model=model, frame_mib=mib)).board == board


def test_all_stems_of_a_board_are_its_own() -> None:
    for stem in ("v100d", "v100dx", "v100s"):
        assert most(card("V100-32"), f"grid_{stem}-8q") == 4
        assert most(card("V100-16"), f"grid_{stem}-8q") == 0


def test_a_name_with_a_number_that_no_card_has_tells_no_size() -> None:
    """Python makes no number of 5,000 digits."""
    for size in ("9" * 5000, "٣"):
        assert type_of(f"grid_v100-{size}q").gib is None


def test_series_have_their_limits() -> None:
    assert (most(card("V100-16"), "grid_v100-2q"), most(card("V100-16"), "grid_v100-2c")) == (8, 0)
    assert (most(card("A100-40"), "nvidia_a100-4c"), most(card("A100-40"), "nvidia_a100-4q")) == (10, 0)


def test_what_is_in_no_table_is_divided_and_said_to_be_an_assumption() -> None:
    unknown = Card(pci_id="", model="A10-24", frame_mib=24576)
    assert most(unknown, "nvidia_a10-6q") == 4
    assert (
        assumption(unknown, "nvidia_a10-6q")
        == "nvidia_a10-6q on A10-24: in no table, taken as 24 GB ÷ 6 GB, at most 4 a card"
    )
    assert most(card("A40"), "nvidia_a40-2q") == 24
    assert "in no table" in assumption(card("A40"), "nvidia_a40-2q")
    assert most(card("A40"), "nvidia_a10-6q") == 0, "a known card of another board"
    assert most(card("H200"), "nvidia_h200x-35c") == 4, "a stem that begins with the card's name"
    assert most(unknown, QUARTER) == 0, "a board of another size"


def test_a_type_whose_name_says_no_size_fills_the_card() -> None:
    assert most(card("V100-16"), "grid_v100") == 1
    assert Load(kind_of(card("V100-16"))).with_one("grid_v100").room(QUARTER) == 0


def test_what_cannot_be_there_but_is_leaves_no_room() -> None:
    odd = Load(kind_of(card("V100-16"))).with_one("nvidia_a40-4q")
    assert (odd.room(QUARTER), odd.room(WHOLE)) == (0, 0)
    mixed = Load(kind_of(card("A40", CardMode.MIXED_SIZE))).with_one("weird")
    assert (mixed.room("nvidia_a40-4q"), mixed.may_take("nvidia_a40-4q")) == (0, False)


def test_instances_of_mig_only_where_the_card_is_in_that_mode() -> None:
    sliced, divided = card("A100-40"), card("A100-40", CardMode.MIG)
    assert (most(sliced, "nvidia_a100-3-20c"), most(divided, "nvidia_a100-3-20c")) == (0, 2)
    assert (most(sliced, "nvidia_a100-20c"), most(divided, "nvidia_a100-20c")) == (2, 0)
    assert most(divided, "nvidia_a100-1-5cme") == 1, "one with media extensions"


def test_older_boards_know_the_same_size_only() -> None:
    begun = Load(kind_of(card("V100-16", CardMode.MIXED_SIZE))).with_one(QUARTER)
    assert begun.room("grid_v100-8q") == 0
