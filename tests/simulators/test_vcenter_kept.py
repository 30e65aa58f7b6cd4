"""The simulated vCenter keeps what it has written, and has short cuts; both say what the world itself says."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.support.fleets import QUARTER, WHOLE
from tests.support.physics import change, on, prepare, suspend, without_nodes
from vgpuctl.sim.inventory import VmSpec, default_inventory
from vgpuctl.sim.vcenter.inventory.center import Center, Context
from vgpuctl.sim.vcenter.inventory.objects import read
from vgpuctl.sim.vcenter.inventory.property_cache import PropertyCache
from vgpuctl.sim.vcenter.methods import handlers
from vgpuctl.sim.vcenter.physics.records import Changes
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.vcenter.wire.metadata import NEWEST, typed
from vgpuctl.sim.vcenter.wire.serialiser import Xml, serialise
from vgpuctl.sim.world import World

STEPS = 40


def world_with_two_hosts() -> World:
    """Its day workers have their vGPUs from the beginning; some VMs are odd."""
    inventory = default_inventory(hosts=2)
    odd: dict[str, dict[str, Any]] = {
        "worker-2": {"sriov": True},
        "worker-3": {"question": "Moved?"},
        "worker-4": {"tools": False},
    }
    day: dict[str, dict[str, Any]] = {
        name: {"vgpus": (QUARTER,), "memory_locked": True} for name in inventory.first_awake
    }
    vms = tuple(replace(vm, **day.get(vm.name, {}), **odd.get(vm.name, {})) for vm in inventory.vms)
    return World(without_nodes(replace(inventory, vms=vms, drs=True)))


def deeds(world: World, chance: random.Random) -> list[Callable[[], Any]]:
    estate = world.estate
    vm = chance.choice(list(estate.vms.values()))
    host = chance.choice(list(estate.hosts.values()))
    added = Changes(added=((0, chance.choice([QUARTER, WHOLE])),), memory_locked=True)
    removed = Changes(removed=tuple((0, key) for key in list(vm.vgpus)[:1]))
    changed = Changes(annotation="x" * chance.randrange(3), extra_config=(("a", str(chance.random())),))
    new = VmSpec(f"new-{chance.randrange(1 << 30)}", host.name, tools=chance.random() < 0.5)
    return [
        *[partial(estate.power_on, vm)] * 4,
        *[partial(estate.power_off, vm)] * 2,
        *[partial(estate.suspend, vm)] * 2,
        *[partial(estate.reconfigure, vm, change) for change in (added, removed, changed)],
        *[partial(estate.shut_down_guest, vm)] * 3,
        partial(estate.add, new),
        partial(estate.destroy, vm),
        partial(estate.set_tools, vm, chance.random() < 0.5),
        partial(estate.answer, vm, chance.choice("01")),
        partial(estate.set_maintenance, host, chance.random() < 0.3),
        partial(estate.migrate, vm, host),
        partial(chance.choice([estate.crash, estate.disconnect, estate.stop_responding]), host),
        *[partial(estate.connect, host)] * 2,
    ]


def differing(center: Center) -> list[str]:
    found = []
    for thing in center._objects.values():
        for path in (*thing.table.readers, *thing.table.writers):
            value = read(thing, path, Context(center, None))
            if (center.xml(thing, (path, NEWEST), None) or "") != xml(value):
                found.append(f"{thing.ref} {path}")
    return found


def xml(value: Any) -> str:
    return "" if value is None else serialise("val", value, object, NEWEST)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_is_what_is_whatever_is_done(seed: int) -> None:
    assert handlers()
    chance = random.Random(seed)
    world = world_with_two_hosts()
    for _ in range(STEPS):
        with contextlib.suppress(Refusal):
            chance.choice(deeds(world, chance))()
        world.wait(chance.choice([0, 0.5, 2, 10]))
        assert differing(world.center) == []


def test_short_cuts_write_what_the_value_itself_says() -> None:
    """Leaves by their openings, device lists by their shapes: each VM's must be its own, in each of its states."""
    world = World(default_inventory(cards=2))
    prepare(world, QUARTER, "worker-1", "worker-2")
    prepare(world, WHOLE, "worker-3")
    for deed in (on, suspend):
        assert deed(world, "worker-2").error is None
        assert differing(world.center) == []
        assert differing(world.center) == []


def test_every_leaf_says_what_its_whole_says() -> None:
    """A leaf with a reader of its own is a short cut: nothing else holds it to its whole structure."""
    world = World(default_inventory(cards=2))
    change(world, "worker-1", Changes(added=((0, QUARTER),)))
    compared = 0
    for thing in world.center._objects.values():
        context = Context(world.center, None)
        for path in thing.table.readers:
            whole = read(thing, path.partition(".")[0], context)
            for step in path.split(".")[1:]:
                whole = getattr(whole, step) if whole is not None else None
            if "." in path and thing.table.nearest(path.partition(".")[0]):
                leaf = read(thing, path, context)
                assert xml(leaf) == xml(typed(whole, type(leaf))), f"{thing.ref} {path}"
                compared += 1
    assert compared > 100


def test_there_is_an_end_to_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgpuctl.sim.vcenter.inventory.property_cache._MAX_CHARACTERS", 10)
    kept = PropertyCache()
    for number in range(4):
        kept.store(f"vm-{number}", ("name", None), Xml("four"))
    assert [bool(kept.values_of(f"vm-{number}")) for number in range(4)] == [False, False, True, True]
    kept.forget("vm-3")
    kept.store("vm-4", ("name", None), Xml("four"))
    assert kept.values_of("vm-2")
