"""The pool of vGPU licences: leased at boot, kept while a VM sleeps, returned by a shutdown."""

from __future__ import annotations

import pytest

from tests.support.physics import off, on, suspend, worker, world_with
from vgpuctl.sim.inventory import Licences
from vgpuctl.sim.world import World

LEASE_S = 1000.0


def pool_of(seats: int) -> World:
    """Three VMs with a vGPU, and one without."""
    vms = (*(worker(name) for name in "abc"), worker("plain", vgpus=(), memory_locked=False))
    return world_with(*vms, licences=Licences(seats, LEASE_S))


def says(world: World, *names: str) -> list[str]:
    return [world.estate.licences.status(world.estate.vms[name]) for name in names]


def test_seats_are_leased_at_boot_while_there_are_any() -> None:
    world = pool_of(seats=2)
    for name in ("a", "b", "c", "plain"):
        on(world, name)
    assert says(world, "a", "b", "c", "plain") == ["Licensed", "Licensed", "Unlicensed", ""]
    world.wait(3 * LEASE_S)
    assert says(world, "a", "b", "c") == ["Licensed", "Licensed", "Unlicensed"], "running guests renew their leases"


@pytest.mark.parametrize("how", ["suspend", "power-off", "crash"])
def test_a_vm_that_stops_without_a_shutdown_keeps_its_seat_until_the_lease_expires(how: str) -> None:
    world = pool_of(seats=1)
    on(world, "a")
    if how == "crash":
        world.estate.crash(world.estate.hosts["esx-1"])
        world.estate.connect(world.estate.hosts["esx-1"])
    else:
        (suspend if how == "suspend" else off)(world, "a")
    on(world, "b")
    world.wait(LEASE_S - 10)
    assert says(world, "a", "b") == ["", "Unlicensed"]
    world.wait(10)
    assert says(world, "b") == ["Licensed"]


def test_a_shutdown_returns_the_seat_to_the_guest_that_waits() -> None:
    world = pool_of(seats=1)
    on(world, "a")
    on(world, "b")
    world.wait(10)
    world.estate.shut_down_guest(world.estate.vms["a"])
    world.wait(10)
    assert says(world, "a", "b") == ["", "Licensed"]


def test_a_resume_in_time_goes_on_with_its_seat_and_a_late_one_has_lost_it() -> None:
    world = pool_of(seats=1)
    on(world, "a")
    suspend(world, "a")
    world.wait(LEASE_S / 2)
    on(world, "a")
    world.wait(LEASE_S)
    assert says(world, "a") == ["Licensed"]
    suspend(world, "a")
    on(world, "b")
    world.wait(LEASE_S)
    on(world, "a")
    assert says(world, "a", "b") == ["Unlicensed", "Licensed"]


def test_a_guest_that_waits_and_is_switched_off_waits_no_more() -> None:
    world = pool_of(seats=1)
    for name in "ab":
        on(world, name)
    off(world, "b")
    world.wait(10)
    world.estate.shut_down_guest(world.estate.vms["a"])
    world.wait(10)
    on(world, "c")
    assert says(world, "b", "c") == ["", "Licensed"]


def test_without_a_pool_no_probe_has_anything_to_say() -> None:
    world = world_with(worker("a"))
    on(world, "a")
    off(world, "a")
    assert says(world, "a") == [""]
