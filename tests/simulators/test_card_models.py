"""The card models are those that `tests/data` transcribes, and their tables agree with each other."""

from __future__ import annotations

import tomllib

import pytest

from tests.support.paths import ROOT
from tests.support.reckoning import types_of
from tests.support.transcript import ADDRESS_SPACE, CARDS, SHAPES, as_of
from vgpuctl.sim.card_models import MIG_SHAPES, MMIO_GB, MODELS, CardMode, CardModel, Offer
from vgpuctl.sim.inventory import CardSpec, pci_id

EVERY_OFFER = [
    pytest.param(model, mode, vgpu, offer, id=f"{name}-{mode}-{vgpu}")
    for name, model in MODELS.items()
    for mode, offers in model.offers.items()
    for vgpu, offer in offers.items()
]


@pytest.mark.parametrize(("table", "document"), [("vgpu-types", "vgpu-guides.md"), ("mig-shapes", "mig-guide.md")])
def test_each_table_names_its_sources_and_is_of_the_transcripts_date(table: str, document: str) -> None:
    read = tomllib.loads((ROOT / f"vgpuctl/sim/card_tables/{table}.toml").read_text(encoding="utf-8"))
    assert any(source.startswith("NVIDIA") for source in read["sources"])
    assert read["as-of"] == as_of(document)


def test_the_simulator_knows_the_transcribed_cards_and_no_others() -> None:
    assert sorted(MODELS) == sorted(CARDS)


@pytest.mark.parametrize("name", CARDS)
def test_a_card_model_is_as_transcribed(name: str) -> None:
    model, row = MODELS[name], CARDS[name]
    assert model.frame_mib == row.gb * 1024
    for mode in CardMode:
        offers = model.offers.get(mode, {})
        found = {vgpu: (vgpu, offer.width, offer.most, offer.places) for vgpu, offer in offers.items()}
        assert found == types_of(name, mode.value), mode


def test_the_address_space_is_as_transcribed() -> None:
    found = {f"{row.prefix}{row.stems[0]}": ADDRESS_SPACE.get(name, 0) for name, row in CARDS.items()}
    assert found == MMIO_GB


def test_the_shapes_of_gpu_instances_are_as_transcribed() -> None:
    found = sorted((len(shape["places"]), shape["width"], tuple(shape["places"])) for shape in MIG_SHAPES.values())
    assert found == sorted(SHAPES.values())


@pytest.mark.parametrize(("model", "mode", "vgpu", "offer"), EVERY_OFFER)
def test_an_offers_counts_places_and_frame_agree(model: CardModel, mode: CardMode, vgpu: str, offer: Offer) -> None:
    most = len(offer.places) or offer.most
    assert offer.most == most
    assert vgpu.endswith((f"-{offer.frame_gb}q", f"-{offer.frame_gb}c"))
    ends = [start + offer.width for start in offer.places]
    assert all(end <= start for end, start in zip(ends, offer.places[1:], strict=False)), "two places overlap"
    assert offer.most * offer.width <= (8 if mode is CardMode.MIG else model.frame_mib // 1024)


@pytest.mark.parametrize("name", ["P100-16", "V100-16", "V100-32", "T4"])
@pytest.mark.parametrize("mode", [CardMode.MIXED_SIZE, CardMode.MIG])
def test_older_cards_know_the_same_size_only(name: str, mode: CardMode) -> None:
    with pytest.raises(ValueError, match=f"{name} has no mode {mode.value}; it has sameSize"):
        CardSpec(pci_id(0), MODELS[name], mode)


def test_mixed_size_lowers_some_counts() -> None:
    same, mixed = (CardSpec(pci_id(0), MODELS["A100-40"], mode).vgpus for mode in list(CardMode)[:2])
    lower = {vgpu: (most, mixed[vgpu]) for vgpu, most in same.items() if mixed[vgpu] != most}
    assert lower == {"nvidia_a100-8c": (5, 4), "nvidia_a100-4c": (10, 8)}


def test_small_types_are_for_graphics_alone() -> None:
    offered = CardSpec(pci_id(0), MODELS["V100-32"]).vgpus
    assert offered["grid_v100d-1q"] == 32
    assert "grid_v100d-1c" not in offered
