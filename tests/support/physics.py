"""Words for vCenter's physics in virtual time: small worlds, and what is done to their VMs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.fleets import QUARTER
from vgpuctl.sim.inventory import Durations, HostSpec, Inventory, VmSpec, v100
from vgpuctl.sim.vcenter.physics.records import Changes, Task
from vgpuctl.sim.world import World

GIB = 1024


def worker(name: str, host: str = "esx-1", **more: Any) -> VmSpec:
    """A VM with a quarter of a card and all its memory reserved."""
    return VmSpec(name, host, **{"memory_mib": 16 * GIB, "vgpus": (QUARTER,), "memory_locked": True, **more})


def world_with(*vms: VmSpec, hosts: int = 1, durations: Durations | None = None, **more: Any) -> World:
    """These VMs on hosts with one V100 each, or on the hosts that are given as `host`."""
    memory = more.pop("memory_mib", 64 * GIB)
    given = more.pop("host", None)
    specs = tuple(HostSpec(f"esx-{n}", (v100(0),), memory_mib=memory) for n in range(1, hosts + 1))
    return World(Inventory("gpu", given or specs, vms, **more), durations)


def without_nodes(inventory: Inventory) -> Inventory:
    """The same VMs, and no Kubernetes in them: its controllers cost time that a test of vCenter alone can save."""
    return replace(inventory, workloads=(), vms=tuple(replace(vm, has_node=False) for vm in inventory.vms))


def on(world: World, name: str) -> Task:
    """The power-on or resume of a VM, ended."""
    return world.wait_for(world.estate.power_on(world.estate.vms[name]))


def off(world: World, name: str) -> Task:
    """The hard power-off of a VM, ended."""
    return world.wait_for(world.estate.power_off(world.estate.vms[name]))


def suspend(world: World, name: str) -> Task:
    """The suspend of a VM, ended."""
    return world.wait_for(world.estate.suspend(world.estate.vms[name]))


def change(world: World, name: str, changes: Changes) -> Task:
    """The reconfiguration of a VM, ended."""
    return world.wait_for(world.estate.reconfigure(world.estate.vms[name], changes))


def prepare(world: World, vgpu: str, *names: str) -> None:
    """Give each VM a vGPU, and reserve its memory."""
    for name in names:
        assert kind(change(world, name, Changes(added=((0, vgpu),), memory_locked=True))) is None


def kind(task: Task) -> str | None:
    """The fault with which a task has ended, if any."""
    return task.error.kind if task.error else None
