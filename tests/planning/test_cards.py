"""Which types a card takes, and how many: the product's tables are those that `tests/data` transcribes."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from tests.support.fleets import QUARTER, WHOLE
from tests.support.paths import ROOT
from tests.support.reckoning import types_of
from tests.support.transcript import ADDRESS_SPACE, CARDS, PLACES, STEMS, as_of
from tests.support.transcript import SHAPES as INSTANCES
from vgpuctl.model.hosts import Card, CardMode, TypeFacts
from vgpuctl.planning.cards.boards import ADDRESS_SPACE_GIB, BOARDS, BY_NAME, MIXED_PLACES, SHAPES, type_of
from vgpuctl.planning.cards.card_rules import Load, assumption, frame_gib, kind_of, slice_of

MODES = {CardMode.SAME_SIZE: "sameSize", CardMode.MIXED_SIZE: "mixedSize", CardMode.MIG: "mig"}
KINDS = [(model, mode) for model in CARDS for mode, name in MODES.items() if types_of(model, name)]
EVERY_TYPE = sorted({vgpu for model, mode in KINDS for vgpu in types_of(model, MODES[mode])})


def card(model: str, mode: CardMode = CardMode.SAME_SIZE, frame_gib: float = 0) -> Card:
    """As vCenter's views name it: the first word of the device's name, and the frame."""
    size = round(frame_gib or CARDS[model].gb)
    return Card(pci_id="0000:3b:00.0", model=f"{model.partition('-')[0]}-{size}", frame_mib=size * 1024, mode=mode)


def most(some: Card, vgpu: str) -> int:
    return Load(kind_of(some)).room(vgpu)


@pytest.mark.parametrize("name", ["vgpu-guides", "mig-guide"])
def test_each_table_names_its_sources_and_is_of_the_transcripts_date(name: str) -> None:
    table = tomllib.loads((ROOT / f"vgpuctl/planning/cards/nvidia/{name}.toml").read_text(encoding="utf-8"))
    assert all(source.startswith("NVIDIA") for source in table["sources"])
    assert table["as-of"] == as_of(f"{name}.md")


def test_the_tables_know_the_transcribed_cards_and_no_others() -> None:
    assert sorted(board.name for board in BOARDS) == sorted(CARDS)


@pytest.mark.parametrize("name", CARDS)
def test_a_row_of_the_types_is_as_transcribed(name: str) -> None:
    ours, row = BY_NAME[name], CARDS[name]
    assert (ours.stems, ours.gib, ours.compute_only) == (row.stems, row.gb, row.series == "C")
    assert (ours.same, ours.q_only, ours.mixed) == (row.same, row.q_only, row.mixed)
    assert {name: (len(shape.starts), *shape) for name, shape in ours.instances.items()} == row.mig


def test_the_places_are_as_transcribed() -> None:
    assert MIXED_PLACES == PLACES
    assert {key: (len(shape.starts), *shape) for key, shape in SHAPES.items()} == INSTANCES


def test_the_address_space_is_as_transcribed() -> None:
    assert ADDRESS_SPACE.keys() <= STEMS.keys()
    assert {stem: ADDRESS_SPACE.get(card, 0) for card, stems in STEMS.items() for stem in stems} == ADDRESS_SPACE_GIB


@pytest.mark.parametrize(("model", "mode"), KINDS)
def test_a_card_takes_the_transcribed_types_and_no_others(model: str, mode: CardMode) -> None:
    ours, transcribed = card(model, mode), types_of(model, MODES[mode])
    for vgpu in EVERY_TYPE:
        piece = slice_of(kind_of(ours), vgpu)
        assert piece == (transcribed[vgpu][1:] if vgpu in transcribed else None), vgpu
        assert assumption(ours, vgpu) == ""


def test_what_is_told_of_a_type_counts_before_its_name() -> None:
    odd, v100 = "grid_v100-special", card("V100-16")
    assert most(v100, odd) == 1
    assert "its frame is not known; it is taken to fill the card" in assumption(v100, odd)
    told = replace(v100, type_facts=(TypeFacts(odd, 4, "q"), TypeFacts(QUARTER, 8)))
    assert (most(told, odd), assumption(told, odd)) == (4, "")
    assert (most(told, QUARTER), most(v100, QUARTER)) == (2, 4)
    assert [frame_gib([some], odd) for some in (told, v100)] == [4, None]
    a100 = replace(card("A100-40"), type_facts=(TypeFacts("nvidia_a100-own", 20, "q"),))
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
