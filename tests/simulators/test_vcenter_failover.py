"""HA admission control of the simulated vCenter: what it refuses, what a client reads, and what we make of that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyVmomi import vim

from tests.support.physics import GIB, kind, off, on, suspend, worker, world_with
from tests.support.vcenter import LOGINS, content_of, vm_named, wait_for
from vgpuctl.model.admission import Admission, FailoverPolicy, ReservedShare, Slots
from vgpuctl.sim.inventory import Ha, HostSpec, Inventory, VmSpec, v100
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate
from vgpuctl.vsphere.admission import admission

REFUSED = "InsufficientFailoverResourcesFault"
HOSTS = {"host-1": "esx-1", "host-2": "esx-2"}


def kept(*vms: VmSpec, machines: int = 2, **ha: Any) -> World:
    """Hosts with 64 GiB each."""
    return world_with(*vms, hosts=machines, ha=Ha(**ha))


def test_a_start_that_would_take_of_the_kept_share_is_refused() -> None:
    world = kept(worker("a", memory_mib=40 * GIB), worker("b", host="esx-2", memory_mib=40 * GIB), memory_percent=50)
    assert kind(on(world, "a")) is None
    assert kind(on(world, "b")) == REFUSED
    assert world.estate.vms["b"].reserved_mib == 0
    suspend(world, "a")
    assert kind(on(world, "b")) is None
    assert kind(on(world, "a")) == REFUSED, "a resume is no other start"


def test_exactly_the_share_may_stay_and_an_overhead_is_too_much() -> None:
    half = worker("half", memory_mib=64 * GIB - 529)
    world = kept(half, worker("plain", vgpus=(), memory_locked=False), memory_percent=50)
    assert [kind(on(world, name)) for name in ("half", "plain")] == [None, REFUSED]
    assert world.estate.hosts["esx-1"].unreserved_mib == 0


def test_a_host_in_maintenance_is_not_counted() -> None:
    world = kept(worker("a", memory_mib=40 * GIB), memory_percent=50)
    world.estate.set_maintenance(world.estate.hosts["esx-2"], True)
    assert kind(on(world, "a")) == REFUSED


def test_two_starts_at_once_are_not_promised_the_same_room() -> None:
    world = kept(worker("a", memory_mib=40 * GIB), worker("b", host="esx-2", memory_mib=40 * GIB), memory_percent=50)
    tasks = [world.estate.power_on(world.estate.vms[name]) for name in "ab"]
    assert [kind(world.wait_for(task)) for task in tasks] == [None, REFUSED]


def test_slots_are_as_large_as_the_largest_reservation() -> None:
    """Each host has one slot of 40 GiB or three of 16 with overhead; one of three hosts may fail."""
    small = [worker(f"small-{n}", host="esx-2") for n in range(3)]
    world = kept(*small, worker("large", memory_mib=40 * GIB), machines=3, level=1)
    assert [kind(on(world, f"small-{n}")) for n in range(3)] == [None] * 3
    assert kind(on(world, "large")) == REFUSED
    for n in (0, 1):
        off(world, f"small-{n}")
    assert kind(on(world, "large")) is None


def test_of_slots_of_a_fixed_size_a_large_vm_takes_several() -> None:
    small = [worker(f"small-{n}", host="esx-2", vgpus=(), memory_mib=15 * GIB) for n in range(3)]
    world = kept(*small, worker("large", memory_mib=40 * GIB), level=1, slot_mib=16 * GIB)
    assert kind(on(world, "large")) is None
    assert [kind(on(world, f"small-{n}")) for n in range(2)] == [None, REFUSED]


def test_nothing_starts_on_a_failover_host_but_drs_may_know_another() -> None:
    world = kept(worker("a", host="esx-2"), worker("b"), hosts=("esx-2",))
    assert [kind(on(world, name)) for name in "ab"] == [REFUSED, None]
    placed = world_with(worker("a", host="esx-2"), hosts=2, drs=True, ha=Ha(hosts=("esx-2",)))
    assert kind(on(placed, "a")) is None
    assert placed.estate.vms["a"].host.name == "esx-1"


@pytest.fixture(scope="module", params=["share", "slots", "spares", "none"])
def policy(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def standing_estate(policy: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """Two hosts of 100 GiB. One VM takes half of the first, the other would take the whole second."""
    kept = {"share": Ha(memory_percent=30), "slots": Ha(level=1, slot_mib=1024), "spares": Ha(hosts=("esx-2",))}
    hosts = tuple(HostSpec(name, (v100(0),), memory_mib=100 * GIB) for name in HOSTS.values())
    vms = (worker("a", memory_mib=49 * GIB, powered_on=True), worker("b", host="esx-2", memory_mib=99 * GIB))
    inventory = Inventory("gpu", hosts, vms, ha=kept.get(policy))
    with Estate(tmp_path_factory.mktemp(policy) / "estate", inventory, logins=LOGINS) as estate:
        yield estate


def test_a_client_reads_the_policy_in_vcenters_own_shapes(policy: str, client: Any) -> None:
    cluster = content_of(client).searchIndex.FindByInventoryPath("dc/host/gpu")
    read = admission(cluster._moId, cluster.configurationEx, HOSTS)
    expected = {"share": ReservedShare(30), "slots": Slots(1, 1024), "spares": FailoverPolicy(frozenset({"esx-2"}))}
    assert (read and read.policy) == expected.get(policy)
    assert cluster.configurationEx.dasConfig.enabled is (policy != "none")
    free = cluster.summary.admissionControlInfo
    assert (free and free.currentMemoryFailoverResourcesPercent) == (75 if policy == "share" else None)


def test_a_client_meets_the_fault(policy: str, client: Any) -> None:
    refused = wait_for(vm_named(client, "b").PowerOn()).error
    assert (refused is None) is (policy == "none")
    assert refused is None or isinstance(refused, vim.fault.InsufficientFailoverResourcesFault)


def config(policy: Any = None, default: str = "medium", **more: Any) -> Any:
    """As a vCenter would tell of a cluster with HA."""
    ha = vim.cluster.DasConfigInfo(
        enabled=True,
        admissionControlEnabled=True,
        failoverLevel=more.pop("level", None),
        admissionControlPolicy=policy,
        defaultVmSettings=vim.cluster.DasVmSettings(restartPriority=default),
    )
    return vim.cluster.ConfigInfoEx(dasConfig=ha, drsConfig=vim.cluster.DrsConfigInfo(enabled=False), **more)


def percent(**more: Any) -> Any:
    return vim.cluster.FailoverResourcesAdmissionControlPolicy(
        cpuFailoverResourcesPercent=10, memoryFailoverResourcesPercent=25, **more
    )


def read(config: Any) -> Admission | None:
    return admission("domain-c7", config, HOSTS)


def test_a_share_that_vcenter_reckons_itself_is_told_apart() -> None:
    assert read(config(percent(failoverLevel=2, autoComputePercentages=True))) == Admission(
        cluster="domain-c7", policy=ReservedShare(25, level=2)
    )
    (by_hand, older) = (read(config(percent(failoverLevel=2, autoComputePercentages=False))), read(config(percent())))
    assert by_hand == older == Admission(cluster="domain-c7", policy=ReservedShare(25))


def test_an_old_vcenter_without_a_policy_has_a_level() -> None:
    assert read(config(level=1)) == Admission(cluster="domain-c7", policy=Slots(1))
    assert read(config()) is None


def test_where_nothing_is_refused_nothing_is_told() -> None:
    for switch in ("enabled", "admissionControlEnabled"):
        switched_off = config(percent())
        setattr(switched_off.dasConfig, switch, False)
        assert read(switched_off) is None
    assert read(vim.ComputeResource.ConfigInfo(vmSwapPlacement="vmDirectory")) is None, "a host without a cluster"
    assert read(None) is None


def override(vm: str, priority: str) -> Any:
    settings = vim.cluster.DasVmSettings(restartPriority=priority)
    return vim.cluster.DasVmConfigInfo(key=vim.VirtualMachine(vm), dasSettings=settings)


def test_whom_ha_does_not_restart_is_told() -> None:
    said = [override("vm-1", "disabled"), override("vm-2", "high"), override("vm-3", "clusterRestartPriority")]
    protecting = read(config(percent(), dasVmConfig=said))
    not_protecting = read(config(percent(), default="disabled", dasVmConfig=said))
    assert protecting
    assert not_protecting
    names = ("vm-1", "vm-2", "vm-3", "vm-4")
    assert [protecting.counts(vm) for vm in names] == [False, True, True, True]
    assert [not_protecting.counts(vm) for vm in names] == [False, True, False, False]


def test_whether_drs_places_vms_is_told_too() -> None:
    for enabled in (False, True):
        some = config(percent())
        some.drsConfig.enabled = enabled
        found = read(some)
        assert found
        assert found.drs_moves is enabled
