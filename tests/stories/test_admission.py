"""HA admission control, through real processes: what cannot start at night is refused before anything is touched; and
in virtual time: what can, waits for its turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.day import at_work
from tests.support.lab import Lab
from tests.support.rehearsal import Rehearsal
from vgpuctl.sim.inventory import Durations, Ha, HostSpec, story, v100
from vgpuctl.sim.scenarios import EXAMPLES

Make = Callable[..., Lab]
SCENARIO = EXAMPLES["no-failover-at-night"].read_text()
GIB = 1024


def by_day(make_lab: Make, folder: Path, text: str) -> Lab:
    """Provisioned, and the day workers awake."""
    path = folder / "estate.yaml"
    path.write_text(text)
    lab = make_lab("--instant", "--scenario", str(path))
    lab.vgpuctl("provision", "--yes").ok()
    lab.vgpuctl("switch", "day", "--yes").ok()
    lab.calls()
    return lab


def awake(lab: Lab) -> set[str]:
    return {each["name"] for each in lab.json("vgpuctl", "status")["workers"] if each["power"] == "poweredOn"}


def test_one_host_is_refused_and_the_others_proceed(make_lab: Make, tmp_path: Path) -> None:
    lab = by_day(make_lab, tmp_path, SCENARIO)
    ran = lab.vgpuctl("switch", "night", "--yes")
    said = ran.out + ran.err
    assert ran.code == 1, said
    assert "night cannot begin on esx-2: HA admission control of gpu forbids to start worker-10." in said
    assert awake(lab) == {"worker-5", "worker-15", *(f"worker-{n}" for n in range(6, 10))}
    cordoned = lab.kubectl("get", "nodes", "-o", "jsonpath={.items[?(@.spec.unschedulable)].metadata.name}").out.split()
    assert not set(cordoned) & {f"worker-{n}" for n in range(6, 10)}


EVERYWHERE = """\
version: 1
hosts:
  - {name: "esx-[1-2]", cards: [V100-16], memory: 512GiB}
profiles: {small: grid_v100-4q, large: grid_v100-16q}
workers:
  - {name: "day-[1-8]", host: "esx-[1-2]", profile: small, memory: 64GiB, power: on, vgpus: grid_v100-4q}
  - {name: "night-[1-2]", host: "esx-[1-2]", profile: large, memory: 480GiB, vgpus: grid_v100-16q}
shifts: {day: small, night: large}
"""
POLICIES = {
    "memory-percent: 50": "It keeps 50 % of its memory free",
    "level: 1": "It keeps room for the failure of 1 host free",
    "hosts: [esx-1, esx-2]": "HA keeps esx-2 free as a failover host of gpu",
}


@pytest.mark.parametrize("policy", POLICIES)
def test_where_every_host_is_refused_nothing_is_written(make_lab: Make, tmp_path: Path, policy: str) -> None:
    """Admission control was switched on when the day workers ran already."""
    path = tmp_path / "estate.yaml"
    path.write_text(f"{EVERYWHERE}ha: {{{policy}}}\n")
    lab = make_lab("--instant", "--scenario", str(path))
    lab.calls()
    ran = lab.vgpuctl("switch", "night", "--yes")
    assert ran.code == 3, ran.out + ran.err
    assert POLICIES[policy] in ran.err
    assert "Nothing was changed." in ran.err
    calls = lab.calls()
    assert not {name for name in calls["vcenter"] if name.endswith("_Task")}
    assert not {name for name in calls["kubernetes"] if name.startswith(("PATCH nodes", "POST pods"))}
    assert awake(lab) == {f"day-{n}" for n in range(1, 9)}


def test_where_it_fits_the_night_comes(make_lab: Make, tmp_path: Path) -> None:
    lab = by_day(make_lab, tmp_path, SCENARIO.replace("memory: 480GiB", "memory: 300GiB"))
    ran = lab.vgpuctl("switch", "night", "--yes").ok()
    assert "HA admission control" not in ran.out + ran.err
    assert awake(lab) == {"worker-5", "worker-10", "worker-15"}


def test_where_it_is_close_a_note_says_so_and_the_night_comes(make_lab: Make, tmp_path: Path) -> None:
    lab = by_day(make_lab, tmp_path, SCENARIO.replace("memory: 480GiB", "memory: 380GiB"))
    ran = lab.vgpuctl("switch", "night", "--yes").ok()
    assert "HA admission control of gpu may forbid to start worker-5 worker-10 worker-15" in ran.out + ran.err


def test_to_foresee_it_costs_no_call(make_lab: Make, tmp_path: Path) -> None:
    calls = []
    for text in (SCENARIO, SCENARIO.partition("ha:")[0]):
        lab = by_day(make_lab, tmp_path, text)
        lab.vgpuctl("switch", "night", "--dry-run")
        calls.append(lab.calls()["vcenter"])
    assert calls[0] == calls[1]


def test_a_start_waits_until_other_hosts_have_given_back_what_it_takes() -> None:
    """A third of 256 GB is kept. The one host is large by day and slow to leave, the other is large by night."""
    plain = story(hosts=2)
    sizes = {f"worker-{n}": 24 * GIB for n in range(1, 5)} | {f"worker-{n}": 8 * GIB for n in range(6, 10)}
    sizes |= {"worker-5": 32 * GIB, "worker-10": 96 * GIB}
    vms = tuple(replace(vm, memory_mib=sizes.get(vm.name, GIB)) for vm in plain.vms)
    hosts = tuple(HostSpec(each.name, (v100(0),), memory_mib=128 * GIB) for each in plain.hosts)
    inventory = replace(plain, vms=vms, hosts=hosts, ha=Ha(memory_percent=33))
    rehearsal = Rehearsal.of(at_work(inventory), Durations(store_mib_per_s=200))
    rehearsal.wait(60)
    ended = rehearsal.switch("night")
    assert (ended.finished, dict(ended.memory.going_back), rehearsal.refusals) == (True, {}, ())
    assert rehearsal.awake() == {"worker-5", "worker-10"}
    assert [key for key in rehearsal.sent if key.startswith("PowerOn/worker-10")] == ["PowerOn/worker-10/"], "once"
