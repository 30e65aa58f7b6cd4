"""What VMs share besides cards: the host's memory, the datastore, the cluster; and what forbids suspending."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.estates import World, kind
from vgpuctl.sim.card_models import MODELS, CardMode
from vgpuctl.sim.inventory import CardSpec, Durations, HostSpec, Inventory, VmSpec, pci_id, v100
from vgpuctl.sim.vcenter.estate import BadInventory
from vgpuctl.sim.vcenter.records import Changes, Operation, Power
from vgpuctl.sim.vcenter.refusals import Refusal

GIB = 1024
QUARTER = "grid_v100-4q"


def worker(name: str, host: str = "esx-1", **more: Any) -> VmSpec:
    return VmSpec(name, host, **{"memory_mib": 16 * GIB, "vgpus": (QUARTER,), "memory_locked": True, **more})


def estate(*vms: VmSpec, hosts: int = 1, durations: Durations | None = None, **more: Any) -> World:
    """Hosts with one V100 each, unless they are given."""
    memory = more.pop("memory_mib", 64 * GIB)
    given = more.pop("host", None)
    specs = tuple(HostSpec(f"esx-{n}", (v100(0),), memory_mib=memory) for n in range(1, hosts + 1))
    return World(Inventory("gpu", given or specs, vms, **more), durations)


def test_reserved_memory_is_the_hosts_until_it_is_given_back() -> None:
    world = estate(worker("a"), worker("b"), worker("night", memory_mib=48 * GIB))
    world.on("a")
    world.on("b")
    refused = world.on("night")
    assert kind(refused) == "InsufficientMemoryResourcesFault"
    assert refused.error and refused.error.details == {"unreserved": 32 << 30, "requested": 48 << 30}
    world.suspend("a")
    assert kind(world.on("night")) is None
    assert kind(world.on("a")) == "InsufficientMemoryResourcesFault"
    world.off("night")
    assert kind(world.on("a")) is None


def test_memory_without_a_reservation_is_nobodys() -> None:
    world = estate(*(worker(f"plain-{n}", vgpus=(), memory_locked=False, memory_mib=60 * GIB) for n in range(3)))
    assert [kind(world.on(f"plain-{n}")) for n in range(3)] == [None] * 3
    lock = [world.run(world.estate.reconfigure(world.vm(f"plain-{n}"), Changes(memory_locked=True))) for n in range(2)]
    assert [kind(task) for task in lock] == [None, "InsufficientMemoryResourcesFault"]
    assert world.vm("plain-1").memory_locked is False


def test_a_suspend_needs_its_memorys_size_on_the_datastore() -> None:
    world = estate(worker("a"), worker("b"), datastore_free_mib=20 * GIB)
    for name in "ab":
        world.on(name)
    assert kind(world.suspend("a")) is None
    refused = world.suspend("b")
    assert refused.error and (refused.error.kind, refused.error.details["datastore"]) == ("NoDiskSpace", "store")
    assert world.vm("b").power is Power.ON
    world.on("a")
    assert world.estate.store.free_mib == 20 * GIB
    world.suspend("b")
    world.off("b")
    assert world.estate.store.free_mib == 20 * GIB


def test_space_is_promised_once_when_two_suspends_run_side_by_side() -> None:
    world = estate(worker("a"), worker("b"), datastore_free_mib=20 * GIB)
    for name in "ab":
        world.on(name)
    tasks = [world.estate.suspend(world.vm(name)) for name in "ab"]
    assert [kind(world.run(task)) for task in tasks] == [None, "NoDiskSpace"]


def test_a_suspend_that_fails_at_its_end_leaves_no_file() -> None:
    world = estate(worker("a"))
    world.on("a")
    free = world.estate.store.free_mib
    task = world.estate.suspend(world.vm("a"))
    world.estate.work.doom(task.moid, Refusal("Timedout", "injected"))
    assert kind(world.run(task)) == "Timedout"
    assert (world.vm("a").power, world.estate.store.free_mib) == (Power.ON, free)


def test_suspends_share_the_datastores_throughput() -> None:
    world = estate(worker("a"), worker("b", memory_mib=32 * GIB), durations=Durations(store_mib_per_s=1.0 * GIB))
    for name in "ab":
        world.on(name)
    began = world.clock.now_s
    alone = world.estate.suspend(world.vm("a"))
    world.clock.advance_to(began + 8)
    second = world.estate.suspend(world.vm("b"))
    world.clock.advance_to(began + 16)
    assert (alone.progress, second.progress) == (70, 10)
    world.run(alone)
    assert world.clock.now_s - began == pytest.approx(8 + 8 * 2)
    world.run(second)
    assert world.clock.now_s - began == pytest.approx(16 + 32)


@pytest.mark.parametrize("why", ["sriov", "profile"])
def test_some_devices_forbid_suspending(why: str) -> None:
    host = HostSpec("esx-1", (v100(0),), unsuspendable=(QUARTER,) if why == "profile" else ())
    world = estate(worker("a", sriov=why == "sriov"), worker("b", vgpus=("grid_v100-4c",)), host=(host,))
    for name in "ab":
        world.on(name)
    refused = world.suspend("a")
    assert refused.error and refused.error.kind == "GenericVmConfigFault"
    assert ("Network adapter 2" if why == "sriov" else QUARTER) in refused.error.message
    assert kind(world.suspend("b")) is None


def test_a_vm_that_runs_from_the_beginning_has_its_seat_and_memory() -> None:
    world = estate(worker("a", powered_on=True), worker("whole", vgpus=("grid_v100-16q",)))
    assert [len(card.seats) for card in world.vm("a").cards] == [1]
    assert world.estate.hosts["esx-1"].unreserved_mib == 48 * GIB
    assert kind(world.on("whole")) == "InsufficientGraphicsResourcesFault"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (worker("a", powered_on=True, memory_locked=False), "memory reservation"),
        (worker("a", powered_on=True, memory_mib=65 * GIB), "Memory resources"),
        (worker("a", powered_on=True, vgpus=("grid_v100-8q", "grid_v100-4q")), "graphics resource"),
        (worker("a", vgpus=("nvidia_a40-48q",)), "Invalid backing"),
    ],
)
def test_a_beginning_that_breaks_the_physics_is_refused_by_name(spec: VmSpec, why: str) -> None:
    with pytest.raises(BadInventory, match=f"a on esx-1: .*{why}"):
        estate(spec)


def test_nothing_starts_on_a_host_in_maintenance() -> None:
    world = estate(worker("a"), worker("b"))
    host = world.estate.hosts["esx-1"]
    world.on("a")
    with pytest.raises(Refusal, match="current state"):
        world.estate.set_maintenance(host, True)
    world.suspend("a")
    world.estate.set_maintenance(host, True)
    assert [kind(world.on(name)) for name in "ab"] == ["InvalidState"] * 2
    world.estate.set_maintenance(host, False)
    assert kind(world.on("a")) is None


def test_entering_maintenance_waits_for_the_last_vm_or_its_timeout() -> None:
    world = estate(worker("a"), worker("b"))
    host = world.estate.hosts["esx-1"]
    world.on("a")
    assert kind(world.run(world.estate.enter_maintenance(host, timeout_s=30))) == "Timedout"
    waiting = world.estate.enter_maintenance(host, timeout_s=0)
    world.clock.advance_to(world.clock.now_s + 100)
    assert (waiting.progress, host.in_maintenance) == (0, False)
    assert kind(world.on("b")) == "InvalidState"
    world.suspend("a")
    assert (kind(world.run(waiting)), host.in_maintenance) == (None, True)
    assert kind(world.run(world.estate.enter_maintenance(host, timeout_s=0))) == "InvalidState"
    assert kind(world.run(world.estate.leave_maintenance(host))) is None
    assert kind(world.on("a")) is None


def test_under_drs_a_vm_lands_where_there_is_room_and_says_so() -> None:
    whole: dict[str, Any] = {"vgpus": ("grid_v100-16q",)}
    world = estate(*(worker(name, **whole) for name in "abc"), hosts=2, drs=True)
    world.on("a")
    heard: list[str] = []
    world.estate.subscribe(lambda record: heard.append(record.moid))
    world.on("b")
    assert (world.vm("a").host.name, world.vm("b").host.name) == ("esx-1", "esx-2")
    assert {"host-1", "host-2", world.vm("b").moid} <= set(heard)
    refused = world.on("c")
    assert refused.error and refused.error.kind == "NoCompatibleHost"
    reasons = [reason.kind for reason in refused.error.details["error"]]  # type: ignore[attr-defined]
    assert reasons == ["InsufficientGraphicsResourcesFault"] * 2


def test_under_drs_a_resume_finds_another_host_too() -> None:
    whole: dict[str, Any] = {"vgpus": ("grid_v100-16q",)}
    world = estate(*(worker(name, **whole) for name in "ab"), hosts=2, drs=True)
    world.on("a")
    world.suspend("a")
    world.estate.hosts["esx-1"].in_maintenance = True
    assert kind(world.on("a")) is None
    assert (world.vm("a").host.name, world.guests.told[-1]) == ("esx-2", "thaw a")


@pytest.mark.parametrize("more", [{"drs": "disabled"}, {"drs": "manual"}, {"must_run_on": "esx-1"}])
def test_drs_leaves_those_where_they_are_of_whom_it_is_told_so(more: dict[str, str]) -> None:
    whole: dict[str, Any] = {"vgpus": ("grid_v100-16q",)}
    world = estate(worker("a", **whole), worker("b", **whole, **more), worker("c", **whole), hosts=2, drs=True)
    world.on("a")
    assert kind(world.on("b")) == "InsufficientGraphicsResourcesFault"
    assert kind(world.on("c")) is None
    assert world.vm("c").host.name == "esx-2"


def test_where_drs_only_recommends_nobody_is_placed() -> None:
    whole: dict[str, Any] = {"vgpus": ("grid_v100-16q",)}
    world = estate(*(worker(name, **whole) for name in "ab"), hosts=2, drs=True, drs_behaviour="manual")
    world.on("a")
    assert kind(world.on("b")) == "InsufficientGraphicsResourcesFault"


def test_the_fewest_vms_count_not_the_fewest_vgpus() -> None:
    host = HostSpec("esx-1", (v100(0), v100(1)), policy="consolidation")
    pair = worker("pair", vgpus=(QUARTER, QUARTER))
    world = estate(pair, worker("a"), worker("b"), host=(host,))
    world.on("pair")
    world.estate.hosts["esx-1"].policy = "performance"
    world.on("a")
    world.on("b")
    cards = world.estate.hosts["esx-1"].cards
    assert [len(card.seats) for card in cards] == [3, 1]


def test_a_vm_has_sixteen_vgpus_at_most() -> None:
    world = estate(worker("a", vgpus=()))
    sixteen = Changes(added=tuple((n, QUARTER) for n in range(16)))
    assert kind(world.run(world.estate.reconfigure(world.vm("a"), sixteen))) is None
    one_more = world.run(world.estate.reconfigure(world.vm("a"), Changes(added=((0, QUARTER),))))
    assert kind(one_more) == "TooManyDevices"


def test_in_mixed_size_the_place_leaves_most_room_for_others() -> None:
    card = CardSpec(pci_id(0), MODELS["L4"], CardMode.MIXED_SIZE)
    names = [("small", 4), ("middle", 8), ("large", 12)]
    vms = [worker(name, vgpus=(f"nvidia_l4-{size}q",)) for name, size in names]
    world = estate(*vms, host=(HostSpec("esx-1", (card,)),))
    assert [kind(world.on(name)) for name, _ in names] == [None] * 3


def test_a_stalled_resume_keeps_its_seat_until_it_ends() -> None:
    world = estate(worker("a"))
    task = world.estate.power_on(world.vm("a"))
    world.clock.advance_to(world.clock.now_s + 0.1)
    world.estate.work.cancel(task)
    assert (kind(task), task.cancelled, world.vm("a").cards) == ("RequestCanceled", True, [])
    assert world.estate.hosts["esx-1"].unreserved_mib == 64 * GIB
    assert task.operation is Operation.POWER_ON
