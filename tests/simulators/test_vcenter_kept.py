"""The simulated vCenter keeps what it has written; whatever is done to the world, what is kept is what is."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.simulators.test_vcenter_wire import QUARTER, WHOLE
from tests.support.estates import World
from vgpuctl.sim.inventory import story
from vgpuctl.sim.vcenter import (
    app,  # noqa: F401  (it registers the methods)
    growth,
)
from vgpuctl.sim.vcenter.center import Center, Context
from vgpuctl.sim.vcenter.dispatch import HANDLERS
from vgpuctl.sim.vcenter.kept import Kept
from vgpuctl.sim.vcenter.metadata import NEWEST
from vgpuctl.sim.vcenter.records import Changes
from vgpuctl.sim.vcenter.refusals import Refusal
from vgpuctl.sim.vcenter.serialiser import Xml, serialise
from vgpuctl.sim.vcenter.sessions import Sessions
from vgpuctl.sim.vcenter.things import read

STEPS = 40


def world_with_two_hosts() -> World:
    """Its day workers have their vGPUs from the beginning; some VMs are odd."""
    inventory = story(hosts=2)
    odd: dict[str, dict[str, Any]] = {
        "worker-2": {"sriov": True},
        "worker-3": {"question": "Moved?"},
        "worker-4": {"tools": False},
    }
    day: dict[str, dict[str, Any]] = {
        name: {"vgpus": (QUARTER,), "memory_locked": True} for name in inventory.first_awake
    }
    vms = tuple(replace(vm, **day.get(vm.name, {}), **odd.get(vm.name, {})) for vm in inventory.vms)
    return World(replace(inventory, vms=vms, drs=True))


def deeds(world: World, chance: random.Random) -> list[Callable[[], Any]]:
    estate = world.estate
    vm = chance.choice(list(estate.vms.values()))
    host = chance.choice(list(estate.hosts.values()))
    added = Changes(added=((0, chance.choice([QUARTER, WHOLE])),), memory_locked=True)
    removed = Changes(removed=tuple((0, key) for key in list(vm.vgpus)[:1]))
    changed = Changes(annotation="x" * chance.randrange(3), extra_config=(("a", str(chance.random())),))
    copied = growth.Wanted(f"copy-{chance.randrange(5)}", host, Changes(cpus=2), chance.random() < 0.5)
    return [
        *[partial(estate.power_on, vm)] * 4,
        *[partial(estate.power_off, vm)] * 2,
        *[partial(estate.suspend, vm)] * 2,
        *[partial(estate.reconfigure, vm, change) for change in (added, removed, changed)],
        partial(estate.shut_down_guest, vm),
        partial(growth.clone, estate, vm, copied),
        partial(growth.destroy, estate, vm),
        partial(estate.set_tools, vm, chance.random() < 0.5),
        partial(estate.answer, vm, chance.choice("01")),
        partial(estate.set_maintenance, host, chance.random() < 0.3),
        partial(guest_goes_down, world, vm.name),
    ]


def guest_goes_down(world: World, name: str) -> None:
    if name in world.guests.going_down:
        world.guests.going_down.pop(name)()


def differing(center: Center) -> list[str]:
    found = []
    for thing in center._things.values():
        for path in (*thing.table.readers, *thing.table.writers):
            value = read(thing, path, Context(center, None))
            fresh = "" if value is None else serialise("val", value, object, NEWEST)
            if (center.xml(thing, (path, NEWEST), None) or "") != fresh:
                found.append(f"{thing.ref} {path}")
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_is_what_is_whatever_is_done(seed: int) -> None:
    assert HANDLERS
    chance = random.Random(seed)
    world = world_with_two_hosts()
    center = Center(world.estate, Sessions([], world.clock))
    for _ in range(STEPS):
        with contextlib.suppress(Refusal):
            chance.choice(deeds(world, chance))()
        world.clock.advance_to(world.clock.now_s + chance.choice([0, 0.5, 2, 10]))
        assert differing(center) == []


def test_there_is_an_end_to_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgpuctl.sim.vcenter.kept._MOST_CHARACTERS", 10)
    kept = Kept()
    for number in range(4):
        kept.keep(f"vm-{number}", ("name", None), Xml("four"))
    assert [bool(kept.of(f"vm-{number}")) for number in range(4)] == [False, False, True, True]
    kept.forget("vm-3")
    kept.keep("vm-4", ("name", None), Xml("four"))
    assert kept.of("vm-2")
