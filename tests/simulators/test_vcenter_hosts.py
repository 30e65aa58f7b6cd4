"""Hosts that die, are lost, or are emptied: what becomes of their VMs, and what vCenter shows meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.fleets import WHOLE
from tests.support.physics import GIB, change, kind, off, on, suspend, worker, world_with
from vgpuctl.sim.inventory import Ha
from vgpuctl.sim.vcenter.inventory.objects import read
from vgpuctl.sim.vcenter.physics.places import Store
from vgpuctl.sim.vcenter.physics.records import Changes, Connection, Host, Power, Task, Vm
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.world import World

LOST = ["crash", "disconnect", "stop_responding"]


def host_of(world: World, name: str = "esx-1") -> Host:
    return world.estate.hosts[name]


def vm_of(world: World, name: str) -> Vm:
    return world.estate.vms[name]


def shown(world: World, name: str) -> tuple[str, str]:
    """What a client reads of a VM: its connection and its power."""
    obj = world.center._objects[vm_of(world, name).moid]
    runtime: Any = read(obj, "runtime", world.center.context(None))
    return runtime.connectionState, runtime.powerState


def lose(world: World, how: str, name: str = "esx-1") -> None:
    getattr(world.estate, how)(host_of(world, name))


def store_of(world: World) -> Store:
    """Return the one datastore of these worlds."""
    return next(iter(world.estate.vms.values())).store


def plain(name: str, **more: Any) -> Any:
    return worker(name, **{"vgpus": (), "memory_locked": False, **more})


def test_a_crash_stops_what_ran_and_keeps_what_slept() -> None:
    world = world_with(worker("awake"), worker("asleep"))
    free = store_of(world).free_mib
    for name in ("awake", "asleep"):
        on(world, name)
    suspend(world, "asleep")
    world.wait(10)
    lose(world, "crash")
    assert (vm_of(world, "awake").power, vm_of(world, "asleep").power) == (Power.OFF, Power.SUSPENDED)
    assert not world.kubernetes.running("awake")
    assert store_of(world).free_mib == free - 16 * GIB
    assert host_of(world).unreserved_mib == 64 * GIB
    lose(world, "connect")
    assert [kind(on(world, name)) for name in ("asleep", "awake")] == [None, None]
    assert world.kubernetes.running("asleep"), "it goes on where it was"


def test_vcenter_shows_of_a_lost_host_what_it_knew_last() -> None:
    world = world_with(worker("a"), worker("b"))
    on(world, "a")
    lose(world, "crash")
    assert host_of(world).connection is Connection.NOT_RESPONDING
    assert shown(world, "a") == ("disconnected", "poweredOn")
    assert shown(world, "b") == ("disconnected", "poweredOff")
    assert host_of(world).cards[0].booked == [vm_of(world, "a").moid]
    lose(world, "connect")
    assert shown(world, "a") == ("connected", "poweredOff")
    assert host_of(world).cards[0].booked == []


@pytest.mark.parametrize("how", ["disconnect", "stop_responding"])
def test_vms_of_a_host_without_vcenter_go_on(how: str) -> None:
    world = world_with(worker("a", tools=True))
    on(world, "a")
    world.wait(10)
    world.estate.shut_down_guest(vm_of(world, "a"))
    lose(world, how)
    assert world.kubernetes.running("a")
    world.wait(10)
    assert (vm_of(world, "a").power, shown(world, "a")) == (Power.OFF, ("disconnected", "poweredOn"))
    lose(world, "connect")
    assert shown(world, "a") == ("connected", "poweredOff")


@pytest.mark.parametrize("how", LOST)
def test_a_lost_host_carries_nothing_out(how: str) -> None:
    world = world_with(worker("a"), worker("b"))
    on(world, "a")
    lose(world, how)
    tasks = [on(world, "b"), suspend(world, "a"), off(world, "b"), change(world, "b", Changes(annotation="x"))]
    tasks.append(world.wait_for(world.estate.enter_maintenance(host_of(world), 0)))
    assert [kind(task) for task in tasks] == ["HostNotConnected"] * 5
    for now in (world.estate.shut_down_guest, lambda _: world.estate.set_maintenance(host_of(world), True)):
        with pytest.raises(Refusal, match="disconnected"):
            now(vm_of(world, "a"))


@pytest.mark.parametrize("how", LOST)
def test_the_tasks_of_a_host_end_when_it_is_lost(how: str) -> None:
    world = world_with(worker("a"), worker("b"), worker("c"))
    world.durations.tasks_per_host = 2
    free = store_of(world).free_mib
    on(world, "a")
    tasks = [world.estate.suspend(vm_of(world, "a")), *(world.estate.power_on(vm_of(world, name)) for name in "bc")]
    world.wait(0.5)
    lose(world, how)
    assert [kind(task) for task in tasks] == ["HostCommunication"] * 3
    assert (store_of(world).free_mib, vm_of(world, "b").cards) == (free, [])
    assert vm_of(world, "a").power is (Power.OFF if how == "crash" else Power.ON)


def test_a_host_is_lost_once_and_connected_once() -> None:
    world = world_with(worker("a"))
    on(world, "a")
    with pytest.raises(Refusal, match="current state"):
        lose(world, "connect")
    lose(world, "disconnect")
    with pytest.raises(Refusal, match="current state"):
        lose(world, "disconnect")


def under_ha(*vms: Any, **more: Any) -> World:
    return world_with(*vms, hosts=2, ha=Ha(memory_percent=10), **more)


def test_ha_restarts_elsewhere_what_ran_and_nothing_that_slept() -> None:
    world = under_ha(worker("awake"), worker("asleep"), worker("idle"))
    on(world, "awake")
    on(world, "asleep")
    suspend(world, "asleep")
    lose(world, "crash")
    world.wait(17)
    assert shown(world, "awake") == ("disconnected", "poweredOn")
    world.wait(10)
    assert (vm_of(world, "awake").host.name, shown(world, "awake")) == ("esx-2", ("connected", "poweredOn"))
    assert world.kubernetes.running("awake")
    assert [card.booked for card in host_of(world, "esx-2").cards] == [[vm_of(world, "awake").moid]]
    assert [vm_of(world, name).power for name in ("asleep", "idle")] == [Power.SUSPENDED, Power.OFF]
    assert {vm_of(world, name).host.name for name in ("asleep", "idle")} == {"esx-1"}
    off(world, "awake")
    assert shown(world, "awake") == ("connected", "poweredOff"), "vCenter sees it again"


def test_a_restart_without_room_is_tried_again_a_few_times() -> None:
    world = under_ha(worker("night", vgpus=(WHOLE,)), worker("other", host="esx-2"))
    on(world, "night")
    on(world, "other")
    lose(world, "crash")
    world.wait(60)
    assert vm_of(world, "night").power is Power.OFF
    off(world, "other")
    world.wait(60)
    assert vm_of(world, "night").power is Power.OFF
    world.wait(20)
    assert (vm_of(world, "night").power, vm_of(world, "night").host.name) == (Power.ON, "esx-2")


def test_ha_gives_up_after_its_fifth_attempt() -> None:
    world = under_ha(worker("night", vgpus=(WHOLE,)), worker("other", host="esx-2"))
    on(world, "night")
    on(world, "other")
    lose(world, "crash")
    world.wait(1900)
    off(world, "other")
    world.wait(7200)
    assert vm_of(world, "night").power is Power.OFF


@pytest.mark.parametrize("how", ["without HA", "bound to its host", "started by a person"])
def test_what_ha_does_not_restart(how: str) -> None:
    bound = {"must_run_on": "esx-1"} if how == "bound to its host" else {}
    ha = None if how == "without HA" else Ha(memory_percent=10)
    world = world_with(worker("a", **bound), hosts=2, ha=ha)
    on(world, "a")
    lose(world, "crash")
    if how == "started by a person":
        lose(world, "connect")
        on(world, "a")
    world.wait(60)
    expected = Power.ON if how == "started by a person" else Power.OFF
    assert (vm_of(world, "a").power, vm_of(world, "a").host.name) == (expected, "esx-1")


def test_ha_counts_no_lost_host() -> None:
    world = world_with(worker("a", memory_mib=40 * GIB), hosts=2, ha=Ha(memory_percent=50))
    lose(world, "disconnect", "esx-2")
    assert kind(on(world, "a")) == "InsufficientFailoverResourcesFault"


def test_drs_places_nothing_on_a_lost_host_and_nothing_of_one() -> None:
    world = world_with(*(worker(name, vgpus=(WHOLE,)) for name in "ab"), hosts=2, drs=True)
    on(world, "a")
    lose(world, "disconnect", "esx-2")
    refused = on(world, "b")
    assert refused.error and [each.kind for each in refused.error.details["error"]] == [  # type: ignore[attr-defined]
        "InsufficientGraphicsResourcesFault",
        "HostNotConnected",
    ]
    off(world, "a")
    lose(world, "connect", "esx-2")
    lose(world, "disconnect")
    assert kind(on(world, "a")) == "HostNotConnected"


def moved(world: World, name: str, to: str = "esx-2") -> Task:
    return world.wait_for(world.estate.migrate(vm_of(world, name), host_of(world, to)))


def test_a_running_vm_without_a_vgpu_is_moved_and_goes_on() -> None:
    world = world_with(plain("a"), hosts=2)
    on(world, "a")
    world.wait(10)
    assert kind(moved(world, "a")) is None
    assert (vm_of(world, "a").host.name, world.kubernetes.running("a")) == ("esx-2", True)
    assert [host.unreserved_mib for host in world.estate.hosts.values()] == [64 * GIB, 64 * GIB - 169]


def test_a_vgpu_moves_only_with_hot_migration_and_room() -> None:
    cold, hot = (world_with(worker("a"), worker("b"), hosts=2, hot_migration=hot) for hot in (False, True))
    for world in (cold, hot):
        on(world, "a")
    assert kind(moved(cold, "a")) == "MigrationFeatureNotSupported"
    assert kind(moved(hot, "a")) is None
    assert [len(host.cards[0].seats) for host in hot.estate.hosts.values()] == [0, 1]
    full = world_with(worker("a"), worker("whole", host="esx-2", vgpus=(WHOLE,)), hosts=2, hot_migration=True)
    on(full, "a")
    on(full, "whole")
    assert kind(moved(full, "a")) == "InsufficientGraphicsResourcesFault"
    assert [card.vm_moids() for card in vm_of(full, "a").cards] == [[vm_of(full, "a").moid]]


def test_a_suspended_vm_is_moved_cold_and_resumes_there() -> None:
    world = world_with(worker("a"), hosts=2)
    on(world, "a")
    world.wait(10)
    suspend(world, "a")
    assert kind(moved(world, "a")) is None
    assert kind(on(world, "a")) is None
    assert (vm_of(world, "a").host.name, world.kubernetes.running("a")) == ("esx-2", True)


@pytest.mark.parametrize(
    ("more", "before", "fault"),
    [
        ({"must_run_on": "esx-1"}, None, "VmHostAffinityRuleViolation"),
        ({"sriov": True}, None, "MigrationFeatureNotSupported"),
        ({}, lambda world: lose(world, "disconnect", "esx-2"), "HostNotConnected"),
        ({}, lambda world: world.estate.set_maintenance(host_of(world, "esx-2"), True), "InvalidState"),
    ],
)
def test_moves_that_are_refused(more: dict[str, Any], before: Callable[[World], None] | None, fault: str) -> None:
    world = world_with(plain("a", **more), hosts=2)
    on(world, "a")
    if before:
        before(world)
    assert kind(moved(world, "a")) == fault
    assert vm_of(world, "a").host.name == "esx-1"


def emptied(world: World, *, evacuate: bool = False) -> Task:
    return world.estate.enter_maintenance(host_of(world), timeout_s=0, evacuate=evacuate)


def test_drs_empties_a_host_of_what_it_can_move_and_waits_for_the_rest() -> None:
    world = world_with(plain("plain"), worker("gpu"), worker("asleep"), hosts=2, drs=True)
    for name in ("plain", "gpu", "asleep"):
        on(world, name)
    suspend(world, "asleep")
    task = emptied(world)
    world.wait(100)
    assert {name: vm.host.name for name, vm in world.estate.vms.items()} == {
        "plain": "esx-2",
        "gpu": "esx-1",
        "asleep": "esx-1",
    }
    assert not task.done
    suspend(world, "gpu")
    assert (kind(world.wait_for(task)), host_of(world).in_maintenance) == (None, True)
    assert len(host_of(world).vms) == 2, "what does not run may stay"


def test_a_host_with_one_place_for_tasks_is_emptied_too() -> None:
    world = world_with(plain("a"), plain("b"), hosts=2, drs=True)
    on(world, "a")
    on(world, "b")
    world.durations.tasks_per_host = 1
    assert kind(world.wait_for(emptied(world))) is None


def test_with_hot_migration_drs_moves_vgpus_as_soon_as_there_is_room() -> None:
    vms = (worker("gpu"), worker("whole", host="esx-2", vgpus=(WHOLE,)))
    world = world_with(*vms, hosts=2, drs=True, hot_migration=True)
    on(world, "gpu")
    on(world, "whole")
    task = emptied(world)
    world.wait(100)
    assert not task.done
    off(world, "whole")
    assert kind(world.wait_for(task)) is None
    assert (vm_of(world, "gpu").host.name, vm_of(world, "gpu").power) == ("esx-2", Power.ON)


@pytest.mark.parametrize("drs", [True, False])
def test_evacuating_registers_elsewhere_what_does_not_run(drs: bool) -> None:
    world = world_with(worker("asleep"), worker("idle"), hosts=2, drs=drs)
    on(world, "asleep")
    suspend(world, "asleep")
    task = emptied(world, evacuate=True)
    world.wait(100)
    assert task.done is drs
    assert {vm.host.name for vm in world.estate.vms.values()} == {"esx-2" if drs else "esx-1"}
    assert vm_of(world, "asleep").power is Power.SUSPENDED


@pytest.mark.parametrize("who", ["the cluster", "the VM"])
def test_drs_that_is_not_fully_automated_moves_no_running_vm(who: str) -> None:
    override = {"drs": "manual"} if who == "the VM" else {}
    behaviour = "partiallyAutomated" if who == "the cluster" else "fullyAutomated"
    world = world_with(plain("a", **override), hosts=2, drs=True, drs_behaviour=behaviour)
    on(world, "a")
    task = emptied(world)
    world.wait(200)
    assert (task.done, vm_of(world, "a").host.name) == (False, "esx-1")


NEW_BUILD, NEW_MANAGER = {"build": "24957456"}, {"vgpu_manager": "580.82.02"}


def patch(world: World, name: str = "esx-1", **installed: str) -> None:
    host = host_of(world, name)
    world.estate.patch(host, host.software._replace(**installed))


@pytest.mark.parametrize("installed", [NEW_BUILD, NEW_MANAGER])
def test_a_state_from_before_a_patch_does_not_resume_but_boots_cold(installed: dict[str, str]) -> None:
    world = world_with(worker("gpu"), plain("plain"))
    for name in ("gpu", "plain"):
        on(world, name)
    world.wait(10)
    for name in ("gpu", "plain"):
        suspend(world, name)
    patch(world, **installed)
    refused = on(world, "gpu")
    assert refused.error and (refused.error.kind, "saved state" in refused.error.message) == (
        "GenericVmConfigFault",
        True,
    )
    assert (vm_of(world, "gpu").power, vm_of(world, "gpu").cards) == (Power.SUSPENDED, [])
    assert kind(on(world, "plain")) is None, "without a vGPU it resumes"
    off(world, "gpu")
    assert kind(on(world, "gpu")) is None


def test_under_drs_an_old_state_resumes_on_a_host_that_is_as_it_was() -> None:
    world = world_with(worker("a"), hosts=2, drs=True)
    on(world, "a")
    suspend(world, "a")
    patch(world, **NEW_BUILD)
    assert kind(on(world, "a")) is None
    assert vm_of(world, "a").host.name == "esx-2"


def test_a_host_is_patched_while_nothing_runs_and_vcenter_can_reach_it() -> None:
    world = world_with(worker("a"))
    on(world, "a")
    with pytest.raises(Refusal, match="current state"):
        patch(world, **NEW_BUILD)
    off(world, "a")
    lose(world, "disconnect")
    with pytest.raises(Refusal, match="disconnected"):
        patch(world, **NEW_BUILD)
    lose(world, "connect")
    patch(world, **NEW_BUILD)
    assert host_of(world).software.build == NEW_BUILD["build"]


@pytest.mark.parametrize("has_node", [True, False])
def test_a_vm_may_be_suspended_from_the_beginning(has_node: bool) -> None:
    asleep = worker("a", suspended=True, has_node=has_node)
    world = world_with(asleep, worker("old", suspended=True, suspended_under="1"), datastore_free_mib=40 * GIB)
    assert store_of(world).free_mib == 8 * GIB
    assert not world.kubernetes.running("a")
    assert [kind(on(world, name)) for name in ("a", "old")] == [None, "GenericVmConfigFault"]
    assert world.kubernetes.running("a"), "it goes on without a boot"
