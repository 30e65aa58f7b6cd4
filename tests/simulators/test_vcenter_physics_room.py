"""What VMs share besides cards: the host's memory, the datastore, the cluster; and what forbids suspending."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fleets import QUARTER
from tests.support.physics import GIB, change, kind, off, on, suspend, worker, world_with
from vgpuctl.sim.card_models import MODELS, CardMode
from vgpuctl.sim.inventory import CardSpec, Durations, HostSpec, VmSpec, pci_id, v100
from vgpuctl.sim.vcenter.physics import graphics_books
from vgpuctl.sim.vcenter.physics.estate import BadInventory
from vgpuctl.sim.vcenter.physics.overhead import overhead_mib
from vgpuctl.sim.vcenter.physics.records import Changes, Operation, Power
from vgpuctl.sim.vcenter.physics.refusals import Refusal


def test_reserved_memory_is_the_hosts_until_it_is_given_back() -> None:
    world = world_with(worker("a"), worker("b"), worker("night", memory_mib=48 * GIB), memory_mib=65 * GIB)
    on(world, "a")
    on(world, "b")
    refused = on(world, "night")
    assert kind(refused) == "InsufficientMemoryResourcesFault"
    free, needed = 33 * GIB - 2 * 169, 48 * GIB + 411
    assert refused.error and refused.error.details == {"unreserved": free << 20, "requested": needed << 20}
    suspend(world, "a")
    assert kind(on(world, "night")) is None
    assert kind(on(world, "a")) == "InsufficientMemoryResourcesFault"
    off(world, "night")
    assert kind(on(world, "a")) is None


#: vSphere Resource Management, "Sample Overhead Memory on Virtual Machines": memory, then 1, 2, 4 and 8 CPUs, in MiB.
OVERHEADS = [
    (256, 20.29, 24.28, 32.23, 48.16),
    (1024, 25.90, 29.91, 37.86, 53.82),
    (4096, 48.64, 52.72, 60.67, 76.78),
    (16384, 139.62, 143.98, 151.93, 168.60),
]


@pytest.mark.parametrize(("memory_mib", "figures"), [(row[0], row[1:]) for row in OVERHEADS])
def test_the_overhead_of_a_vm_is_near_vmwares_samples(memory_mib: int, figures: tuple[float, ...]) -> None:
    for cpus, expected in zip((1, 2, 4, 8), figures, strict=True):
        assert 0 <= overhead_mib(memory_mib, cpus) - expected < 2


def test_a_vm_without_a_reservation_takes_its_overhead_alone() -> None:
    world = world_with(*(worker(f"plain-{n}", vgpus=(), memory_locked=False, memory_mib=60 * GIB) for n in range(3)))
    assert [kind(on(world, f"plain-{n}")) for n in range(3)] == [None] * 3
    assert world.estate.hosts["esx-1"].unreserved_mib == 64 * GIB - 3 * 502
    lock = [change(world, f"plain-{n}", Changes(memory_locked=True)) for n in range(2)]
    assert [kind(task) for task in lock] == [None, "InsufficientMemoryResourcesFault"]
    assert world.estate.vms["plain-1"].memory_locked is False
    assert world.estate.hosts["esx-1"].unreserved_mib == 4 * GIB - 3 * 502


def test_a_suspend_needs_its_memorys_size_on_the_datastore() -> None:
    world = world_with(worker("a"), worker("b"), datastore_free_mib=20 * GIB)
    for name in "ab":
        on(world, name)
    assert kind(suspend(world, "a")) is None
    refused = suspend(world, "b")
    assert refused.error and (refused.error.kind, refused.error.details["datastore"]) == ("NoDiskSpace", "store")
    assert world.estate.vms["b"].power is Power.ON
    on(world, "a")
    assert world.estate.places.stores[0].free_mib == 20 * GIB
    suspend(world, "b")
    off(world, "b")
    assert world.estate.places.stores[0].free_mib == 20 * GIB


def test_space_is_promised_once_when_two_suspends_run_side_by_side() -> None:
    world = world_with(worker("a"), worker("b"), datastore_free_mib=20 * GIB)
    for name in "ab":
        on(world, name)
    tasks = [world.estate.suspend(world.estate.vms[name]) for name in "ab"]
    assert [kind(world.wait_for(task)) for task in tasks] == [None, "NoDiskSpace"]


def test_a_suspend_that_fails_at_its_end_leaves_no_file() -> None:
    world = world_with(worker("a"))
    on(world, "a")
    free = world.estate.places.stores[0].free_mib
    task = world.estate.suspend(world.estate.vms["a"])
    world.estate.work.set_outcome(task.moid, Refusal("Timedout", "injected"))
    assert kind(world.wait_for(task)) == "Timedout"
    assert (world.estate.vms["a"].power, world.estate.places.stores[0].free_mib) == (Power.ON, free)


def test_suspends_share_the_datastores_throughput() -> None:
    world = world_with(worker("a"), worker("b", memory_mib=32 * GIB), durations=Durations(store_mib_per_s=1.0 * GIB))
    for name in "ab":
        on(world, name)
    began = world.clock.now_s
    alone = world.estate.suspend(world.estate.vms["a"])
    world.clock.advance_to(began + 8)
    second = world.estate.suspend(world.estate.vms["b"])
    world.clock.advance_to(began + 16)
    assert (alone.progress, second.progress) == (70, 10)
    world.wait_for(alone)
    assert world.clock.now_s - began == pytest.approx(8 + 8 * 2)
    world.wait_for(second)
    assert world.clock.now_s - began == pytest.approx(16 + 32)


def test_a_resume_reads_as_long_as_its_suspend_wrote() -> None:
    world = world_with(worker("a", memory_mib=32 * GIB), durations=Durations(store_mib_per_s=1.0 * GIB))
    on(world, "a")
    suspend(world, "a")
    began = world.clock.now_s
    on(world, "a")
    assert world.clock.now_s - began == pytest.approx(32)


def test_a_resume_and_a_suspend_share_the_datastore_unless_one_waits_for_an_answer() -> None:
    durations = Durations(store_mib_per_s=1.0 * GIB)
    world = world_with(*(worker(name) for name in "abc"), durations=durations)
    for name in "abc":
        on(world, name)
    suspend(world, "a")
    suspend(world, "b")
    world.estate.set_question(world.estate.vms["a"], "Was it moved?")
    began = world.clock.now_s
    asking, resume = (world.estate.power_on(world.estate.vms[name]) for name in "ab")
    writing = world.estate.suspend(world.estate.vms["c"])
    world.clock.advance_to(began + 16)
    assert (asking.progress, resume.progress, writing.progress) == (0, 50, 50)
    world.estate.answer(world.estate.vms["a"], "1")
    world.wait_for(writing)
    assert world.clock.now_s - began == pytest.approx(16 + 8 * 3)


def test_the_books_of_a_host_may_be_late_until_they_are_refreshed() -> None:
    world = world_with(worker("a"), durations=Durations(graphics_lag_s=30))
    host = world.estate.hosts["esx-1"]
    on(world, "a")
    assert (world.estate.vms["a"].cards, host.cards[0].booked) == (host.cards, [])
    world.wait(30)
    assert host.cards[0].booked == ["vm-1"]
    suspend(world, "a")
    assert host.cards[0].booked == ["vm-1"], "the card is free, the books do not know it"
    graphics_books.refresh(world.estate, host)
    assert host.cards[0].booked == []


@pytest.mark.parametrize(
    ("key", "value", "refused"),
    [
        ("pciPassthru0.cfg.enable_uvm", "1", True),
        ("pciPassthru0.cfg.enable_debugging", "TRUE", True),
        ("pciPassthru0.cfg.enable_profiling", "0", False),
        ("pciPassthru1.cfg.enable_uvm", "1", False),
    ],
)
def test_unified_memory_debuggers_and_profilers_of_a_vgpu_forbid_suspending(
    key: str, value: str, refused: bool
) -> None:
    world = world_with(worker("a", extra_config=((key, value),)))
    on(world, "a")
    ended = suspend(world, "a")
    assert kind(ended) == ("GenericVmConfigFault" if refused else None)
    assert not refused or (ended.error and "PCI device 0" in ended.error.message)


@pytest.mark.parametrize("why", ["sriov", "profile"])
def test_some_devices_forbid_suspending(why: str) -> None:
    host = HostSpec("esx-1", (v100(0),), unsuspendable=(QUARTER,) if why == "profile" else ())
    world = world_with(worker("a", sriov=why == "sriov"), worker("b", vgpus=("grid_v100-4c",)), host=(host,))
    for name in "ab":
        on(world, name)
    refused = suspend(world, "a")
    assert refused.error and refused.error.kind == "GenericVmConfigFault"
    assert ("Network adapter 2" if why == "sriov" else QUARTER) in refused.error.message
    assert kind(suspend(world, "b")) is None


def test_a_vm_that_runs_from_the_beginning_has_its_seat_and_memory() -> None:
    world = world_with(worker("a", powered_on=True), worker("whole", vgpus=("grid_v100-16q",)))
    assert [len(card.seats) for card in world.estate.vms["a"].cards] == [1]
    assert world.estate.hosts["esx-1"].unreserved_mib == 48 * GIB - 169
    assert kind(on(world, "whole")) == "InsufficientGraphicsResourcesFault"


def test_a_vm_that_is_made_with_vgpus_has_the_address_space_of_their_cards() -> None:
    host = HostSpec("esx-1", (CardSpec(pci_id(0), MODELS["H200"]), CardSpec(pci_id(1), MODELS["T4"])))
    two, small = worker("two", vgpus=("nvidia_h200-70c",) * 2), worker("small", vgpus=("grid_t4-4q",))
    vms = world_with(two, small, host=(host,)).estate.vms
    assert vms["two"].extra_config["pciPassthru.64bitMMIOSizeGB"] == "1024"
    assert vms["small"].extra_config == {}


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
        world_with(spec)


def test_nothing_starts_on_a_host_in_maintenance() -> None:
    world = world_with(worker("a"), worker("b"))
    host = world.estate.hosts["esx-1"]
    on(world, "a")
    with pytest.raises(Refusal, match="current state"):
        world.estate.set_maintenance(host, True)
    suspend(world, "a")
    world.estate.set_maintenance(host, True)
    assert [kind(on(world, name)) for name in "ab"] == ["InvalidState"] * 2
    world.estate.set_maintenance(host, False)
    assert kind(on(world, "a")) is None


def test_entering_maintenance_waits_for_the_last_vm_or_its_timeout() -> None:
    world = world_with(worker("a"), worker("b"))
    host = world.estate.hosts["esx-1"]
    on(world, "a")
    assert kind(world.wait_for(world.estate.enter_maintenance(host, timeout_s=30))) == "Timedout"
    waiting = world.estate.enter_maintenance(host, timeout_s=0)
    world.wait(100)
    assert (waiting.progress, host.in_maintenance) == (0, False)
    assert kind(on(world, "b")) == "InvalidState"
    suspend(world, "a")
    assert (kind(world.wait_for(waiting)), host.in_maintenance) == (None, True)
    assert kind(world.wait_for(world.estate.enter_maintenance(host, timeout_s=0))) == "InvalidState"
    assert kind(world.wait_for(world.estate.leave_maintenance(host))) is None
    assert kind(on(world, "a")) is None


def test_under_drs_a_vm_lands_where_there_is_room_and_says_so() -> None:
    whole: dict[str, Any] = {"vgpus": ("grid_v100-16q",)}
    world = world_with(*(worker(name, **whole) for name in "abc"), hosts=2, drs=True)
    on(world, "a")
    heard: list[str] = []
    world.estate.subscribe(lambda record: heard.append(record.moid))
    on(world, "b")
    assert (world.estate.vms["a"].host.name, world.estate.vms["b"].host.name) == ("esx-1", "esx-2")
    assert {"host-1", "host-2", world.estate.vms["b"].moid} <= set(heard)
    refused = on(world, "c")
    assert refused.error and refused.error.kind == "NoCompatibleHost"
    reasons = [reason.kind for reason in refused.error.details["error"]]  # type: ignore[attr-defined]
    assert reasons == ["InsufficientGraphicsResourcesFault"] * 2


def test_under_drs_a_resume_finds_another_host_too() -> None:
    whole: dict[str, Any] = {"vgpus": ("grid_v100-16q",)}
    world = world_with(*(worker(name, **whole) for name in "ab"), hosts=2, drs=True)
    on(world, "a")
    world.wait(world.durations.guest_boot_s)
    suspend(world, "a")
    world.estate.hosts["esx-1"].in_maintenance = True
    assert kind(on(world, "a")) is None
    assert world.estate.vms["a"].host.name == "esx-2"
    assert world.kubernetes.running("a"), "it goes on there without a boot"


@pytest.mark.parametrize("more", [{"drs": "disabled"}, {"drs": "manual"}, {"must_run_on": "esx-1"}])
def test_drs_leaves_those_where_they_are_of_whom_it_is_told_so(more: dict[str, str]) -> None:
    whole: dict[str, Any] = {"vgpus": ("grid_v100-16q",)}
    world = world_with(worker("a", **whole), worker("b", **whole, **more), worker("c", **whole), hosts=2, drs=True)
    on(world, "a")
    assert kind(on(world, "b")) == "InsufficientGraphicsResourcesFault"
    assert kind(on(world, "c")) is None
    assert world.estate.vms["c"].host.name == "esx-2"


def test_where_drs_only_recommends_nobody_is_placed() -> None:
    whole: dict[str, Any] = {"vgpus": ("grid_v100-16q",)}
    world = world_with(*(worker(name, **whole) for name in "ab"), hosts=2, drs=True, drs_behaviour="manual")
    on(world, "a")
    assert kind(on(world, "b")) == "InsufficientGraphicsResourcesFault"


def test_the_fewest_vms_count_not_the_fewest_vgpus() -> None:
    host = HostSpec("esx-1", (v100(0), v100(1)), policy="consolidation")
    pair = worker("pair", vgpus=(QUARTER, QUARTER))
    world = world_with(pair, worker("a"), worker("b"), host=(host,))
    on(world, "pair")
    world.estate.hosts["esx-1"].policy = "performance"
    on(world, "a")
    on(world, "b")
    cards = world.estate.hosts["esx-1"].cards
    assert [len(card.seats) for card in cards] == [3, 1]


def test_a_vm_has_sixteen_vgpus_at_most() -> None:
    world = world_with(worker("a", vgpus=()))
    sixteen = Changes(added=tuple((n, QUARTER) for n in range(16)))
    assert kind(change(world, "a", sixteen)) is None
    one_more = change(world, "a", Changes(added=((0, QUARTER),)))
    assert kind(one_more) == "TooManyDevices"


def test_in_mixed_size_the_place_leaves_most_room_for_others() -> None:
    card = CardSpec(pci_id(0), MODELS["L4"], CardMode.MIXED_SIZE)
    names = [("small", 4), ("middle", 8), ("large", 12)]
    vms = [worker(name, vgpus=(f"nvidia_l4-{size}q",)) for name, size in names]
    world = world_with(*vms, host=(HostSpec("esx-1", (card,)),))
    assert [kind(on(world, name)) for name, _ in names] == [None] * 3


def test_a_stalled_resume_keeps_its_seat_until_it_ends() -> None:
    world = world_with(worker("a"))
    task = world.estate.power_on(world.estate.vms["a"])
    world.wait(0.1)
    world.estate.work.cancel(task)
    assert (kind(task), task.cancelled, world.estate.vms["a"].cards) == ("RequestCanceled", True, [])
    assert world.estate.hosts["esx-1"].unreserved_mib == 64 * GIB
    assert task.operation is Operation.POWER_ON
