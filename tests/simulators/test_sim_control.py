"""The simulators changed while they run: faults, the clock, durations, people. One lab for all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.lab import Lab


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab.up(tmp_path_factory.mktemp("toy") / "lab", "--instant", "--scenario", "by-day")
    yield lab
    lab.down()


def test_a_frozen_clock_stands_still_and_a_leap_brings_what_falls_due(toy: Lab) -> None:
    clock = toy.json("vgpuctl", "sim", "set", "clock", "freeze")
    assert clock["frozen"]
    toy.vgpuctl("sim", "set", "person", "power-off", "worker-1").ok()
    assert toy.status()["worker-1"]["power"] == "poweredOn"
    later = toy.json("vgpuctl", "sim", "set", "clock", "advance", "60s")
    assert later["seconds"] == pytest.approx(clock["seconds"] + 60)
    assert toy.status()["worker-1"]["power"] == "poweredOff"
    assert not toy.json("vgpuctl", "sim", "set", "clock", "run")["frozen"]


def test_durations_hold_from_now_on(toy: Lab) -> None:
    toy.vgpuctl("sim", "set", "durations", "suspend=1s", "power-on=20ms", "tasks-per-host=3").ok()
    told = toy.json("vgpuctl", "sim", "set", "durations")
    assert (told["suspend_s"], told["power_on_s"], told["store_mib_per_s"]) == (1.0, 0.02, None)
    assert told["tasks_per_host"] == 3
    ran = toy.vgpuctl("sim", "set", "durations", "sleep=1s")
    assert ran.code == 1
    assert "no duration is called sleep; there are: chrony-clock, failover, gpu-stack, graphics-lag," in ran.err
    assert "'many' is not a number" in toy.vgpuctl("sim", "set", "durations", "tasks-per-host=many").err


def test_a_person_does_what_people_do(toy: Lab) -> None:
    toy.vgpuctl("sim", "set", "person", "cordon", "worker-1").ok()
    toy.vgpuctl("sim", "set", "person", "label", "worker-2", "team=a").ok()
    nodes = toy.nodes()
    assert nodes["worker-1"]["spec"]["unschedulable"]
    assert nodes["worker-2"]["metadata"]["labels"]["team"] == "a"
    ran = toy.vgpuctl("sim", "set", "person", "cordon", "worker-77")
    assert ran.code == 1
    assert "there is no node worker-77; did you mean worker-" in ran.err
    assert "did you mean cordon?" in toy.vgpuctl("sim", "set", "person", "cordn", "worker-1").err


def test_faults_are_listed_counted_and_cleared(toy: Lab) -> None:
    toy.vgpuctl("sim", "fault", "add", "PATCH nodes", "--cut", "--nth", "3").ok()
    added = toy.vgpuctl("sim", "fault", "add", "vcenter", "--fail", "NotAuthenticated", "--on", "x", "--for", "1h").ok()
    assert "vcenter on x: it fails with NotAuthenticated" in added.out
    listed = toy.vgpuctl("sim", "fault", "list").ok().out
    assert "PATCH nodes: the connection is cut (call 3); hit 0 of 0 calls" in listed
    assert "1 fault cleared." in toy.vgpuctl("sim", "fault", "clear", "1").ok().out
    assert toy.vgpuctl("sim", "fault", "clear", "1").code == 1
    assert "1 fault cleared." in toy.vgpuctl("sim", "fault", "clear").ok().out
    assert "No faults." in toy.vgpuctl("sim", "fault", "list").ok().out


def test_a_host_is_lost_and_found_by_the_command(toy: Lab) -> None:
    ran = toy.vgpuctl("sim", "set", "host", "esx-1", "--not-responding").ok()
    assert ran.out.startswith("name: esx-1, maintenance: False, connection: notResponding, build: ")
    assert toy.json("vgpuctl", "status", "-o", "json")["hosts"][0]["connected"] is False
    toy.vgpuctl("sim", "set", "host", "esx-1", "--connect").ok()
    assert "choose one of --maintenance, --crash" in toy.vgpuctl("sim", "set", "host", "esx-1").err
