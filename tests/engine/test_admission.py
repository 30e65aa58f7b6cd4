"""HA admission control in virtual time: what cannot start is refused before anything is touched, on its host alone; and
what can, waits for its turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from vgpuctl.planning.wishes import Provisioning
from vgpuctl.sim.inventory import Durations, Ha, HostSpec, Inventory, default_inventory, v100
from vgpuctl.sim.scenarios import EXAMPLES
from vgpuctl.sim.scenarios.scenario import read_scenario

GIB = 1024
TEN_IS_TOO_LARGE = read_scenario(EXAMPLES["no-failover-at-night"], Durations())
EVERYWHERE = ("worker-5", "worker-10", "worker-15")


def with_memory(inventory: Inventory, **sizes_gib: int) -> Inventory:
    sizes = {name.replace("_", "-"): size * GIB for name, size in sizes_gib.items()}
    return replace(
        inventory, vms=tuple(replace(vm, memory_mib=sizes.get(vm.name, vm.memory_mib)) for vm in inventory.vms)
    )


def by_day(inventory: Inventory) -> Rehearsal:
    """Provisioned, and the day workers awake."""
    rehearsal = Rehearsal.of(inventory, Durations())
    assert rehearsal.provision(Provisioning()).finished
    assert rehearsal.switch("day").finished
    assert rehearsal.awake() == set(inventory.first_awake)
    rehearsal.wait(60)
    return rehearsal


def test_one_host_is_refused_and_the_others_proceed() -> None:
    rehearsal = by_day(TEN_IS_TOO_LARGE)
    before = len(rehearsal.sent)
    assert rehearsal.switch("night").finished
    (refusal,) = rehearsal.refusals
    assert (refusal.host, "forbids to start worker-10." in refusal.message) == ("esx-2", True)
    stay = {f"worker-{n}" for n in range(6, 10)}
    assert rehearsal.awake() == {"worker-5", "worker-15", *stay}
    assert not rehearsal.cordoned() & stay
    assert not {key.split("/")[1] for key in rehearsal.sent[before:]} & {*stay, "worker-10"}
    assert rehearsal.broken == []


def test_where_it_fits_the_night_comes() -> None:
    rehearsal = by_day(with_memory(TEN_IS_TOO_LARGE, worker_10=300))
    assert rehearsal.switch("night").finished
    assert (rehearsal.refusals, rehearsal.remarks) == ((), ())
    assert (rehearsal.awake(), rehearsal.broken) == (set(EVERYWHERE), [])


def test_where_it_is_close_a_remark_says_so_and_the_night_comes() -> None:
    rehearsal = by_day(with_memory(TEN_IS_TOO_LARGE, worker_10=380))
    assert rehearsal.switch("night").finished
    (remark,) = rehearsal.remarks
    assert "HA admission control of gpu may forbid to start worker-5 worker-10 worker-15" in remark.message
    assert (rehearsal.awake(), rehearsal.broken) == (set(EVERYWHERE), [])


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (Ha(memory_percent=50), "It keeps 50 % of its memory free"),
        (Ha(level=1), "It keeps room for the failure of 1 host free"),
        (Ha(hosts=("esx-1", "esx-2")), "HA keeps esx-2 free as a failover host of gpu"),
    ],
)
def test_where_every_host_is_refused_nothing_is_sent(policy: Ha, why: str) -> None:
    """Admission control was switched on when the day workers ran already."""
    plain = default_inventory(hosts=2)
    sizes = dict.fromkeys(plain.first_awake, 64 * GIB) | dict.fromkeys(("worker-5", "worker-10"), 480 * GIB)
    vms = tuple(replace(vm, memory_mib=sizes.get(vm.name, GIB)) for vm in plain.vms)
    hosts = tuple(HostSpec(each.name, (v100(0),), memory_mib=512 * GIB) for each in plain.hosts)
    rehearsal = Rehearsal.of(at_work(replace(plain, vms=vms, hosts=hosts, ha=policy)), Durations())
    rehearsal.wait(60)
    rehearsal.switch("night")
    assert {refusal.host for refusal in rehearsal.refusals} == {"esx-1", "esx-2"}
    assert any(why in refusal.message for refusal in rehearsal.refusals)
    assert (rehearsal.sent, rehearsal.awake()) == ([], set(plain.first_awake))


def test_a_start_waits_until_other_hosts_have_given_back_what_it_takes() -> None:
    """A third of 256 GB is kept. The one host is large by day and slow to leave, the other is large by night."""
    plain = default_inventory(hosts=2)
    sizes = {f"worker-{n}": 24 * GIB for n in range(1, 5)} | {f"worker-{n}": 8 * GIB for n in range(6, 10)}
    sizes |= {"worker-5": 32 * GIB, "worker-10": 96 * GIB}
    vms = tuple(replace(vm, memory_mib=sizes.get(vm.name, GIB)) for vm in plain.vms)
    hosts = tuple(HostSpec(each.name, (v100(0),), memory_mib=128 * GIB) for each in plain.hosts)
    inventory = replace(plain, vms=vms, hosts=hosts, ha=Ha(memory_percent=33))
    rehearsal = Rehearsal.of(at_work(inventory), Durations(store_mib_per_s=200))
    rehearsal.wait(60)
    ended = rehearsal.switch("night")
    assert (ended.finished, dict(ended.state.going_back), rehearsal.refusals) == (True, {}, ())
    assert rehearsal.awake() == {"worker-5", "worker-10"}
    assert [key for key in rehearsal.sent if key.startswith("PowerOn/worker-10")] == ["PowerOn/worker-10/"], "once"
