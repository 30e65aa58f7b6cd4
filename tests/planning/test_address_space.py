"""A VM needs 64-bit address space and EFI for the cards of its vGPUs, as much for each as NVIDIA's table says."""

from __future__ import annotations

import pytest

from tests.support.fleets import fleet, worker
from vgpuctl.model.fleet import Mmio
from vgpuctl.model.requests import AttachVgpus
from vgpuctl.planning.cards.mmio import mmio_needed
from vgpuctl.planning.checks.workers import Case, NeedsEfi, Obstacle, obstacles
from vgpuctl.planning.steps import Attach, equipped

NEEDED = [
    ("grid_v100-4q", 64),
    ("nvidia_l4-8q", 64),
    ("nvidia_a10-6q", 64),
    ("nvidia_a40-8q", 128),
    ("nvidia_l40-8q", 128),
    ("nvidia_l40s-8q", 128),
    ("nvidia_rtx6000-ada-48q", 128),
    ("nvidia_a100d-1-10cme", 256),
    ("nvidia_h200-70c", 512),
    ("nvidia_h200-7-141c", 512),
]
NOT_NEEDED = ["grid_t4-4q", "grid_rtx6000-24q", "nvidia_own-8q", "own"]


@pytest.mark.parametrize(("vgpu", "gib"), NEEDED)
def test_a_vm_is_given_the_address_space_that_it_lacks(vgpu: str, gib: int) -> None:
    for mmio, asked in ((Mmio(efi=True), gib), (Mmio(efi=True, use_64bit=True, size_gib=gib), 0)):
        some = fleet(worker("a", on=False, mmio=mmio))
        (request,) = Attach("a", (vgpu,)).requests(some, "")
        assert isinstance(request, AttachVgpus)
        assert request.mmio_gib == asked


@pytest.mark.parametrize("vgpu", [vgpu for vgpu, _ in NEEDED])
def test_a_vm_that_boots_by_bios_gets_no_vgpu_of_such_a_card(vgpu: str) -> None:
    (obstacle,) = against(vgpu, Mmio(efi=False))
    assert (type(obstacle), obstacle.against) == (NeedsEfi, (Attach,))
    assert obstacle.message == f"a boots by BIOS, and the card of {vgpu} needs EFI."
    assert against(vgpu, Mmio(efi=True)) == []


@pytest.mark.parametrize("vgpu", NOT_NEEDED)
def test_other_cards_need_neither(vgpu: str) -> None:
    assert mmio_needed((vgpu,)) == 0
    assert against(vgpu, Mmio(efi=False)) == []


@pytest.mark.parametrize(("memory_mib", "enough"), [(0, False), (16384, True), (32767, True), (32768, False)])
def test_a_small_running_vm_is_not_restarted_for_address_space(memory_mib: int, enough: bool) -> None:
    """NVIDIA's table is for VMs of 32 GB and more. Memory that was not read counts as large."""
    small = worker("a", "nvidia_l4-8q", mmio=Mmio(efi=True), memory_mib=memory_mib)
    assert equipped(small, ("nvidia_l4-8q",)) is enough
    assert not equipped(small, ("nvidia_l4-4q",))
    (request,) = Attach("a", ("nvidia_l4-4q",)).requests(fleet(small), "")
    assert isinstance(request, AttachVgpus)
    assert request.mmio_gib == 64, "what is attached anyway gets the setting"


def against(vgpu: str, mmio: Mmio) -> list[Obstacle]:
    return list(obstacles(Case(worker("a", on=False, mmio=mmio), None, (vgpu,))))


def test_each_vgpu_of_a_vm_needs_address_space_of_its_own() -> None:
    assert mmio_needed(("nvidia_h200-70c", "nvidia_h200-70c")) == 1024
    assert mmio_needed(("nvidia_l40s-8q", "grid_t4-16q")) == 128
