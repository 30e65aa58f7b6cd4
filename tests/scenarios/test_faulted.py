"""The product through servers that misbehave: what was asked for happens once, and the night still comes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.lab import Lab

NIGHT, DAY = {"worker-5"}, {"worker-1", "worker-2", "worker-3", "worker-4"}


def fault(lab: Lab, *words: str) -> None:
    lab.vgpuctl("sim", "fault", "add", *words).ok()


def met(lab: Lab) -> list[int]:
    return [each["met"] for each in lab.json("vgpuctl", "sim", "fault", "list")["faults"]]


def only_long(words: tuple[str, ...]) -> Any:
    """In virtual time all kinds of faults are rehearsed in any case."""
    return pytest.param(words, marks=pytest.mark.long)


@pytest.mark.parametrize(
    "words",
    [
        ("SuspendVM_Task", "--on", "worker-2", "--lose-reply", "--nth", "1"),
        ("PATCH nodes", "--lose-reply", "--every", "3"),
        ("WaitForUpdatesEx", "--cut", "--every", "4", "--times", "3"),
        ("vcenter", "--end-sessions", "--nth", "12"),
        ("kubernetes", "--fail", "503", "--every", "7"),
        *map(
            only_long,
            [
                ("SuspendVM_Task", "--cut", "--nth", "2"),
                ("SuspendVM_Task", "--hang", "300ms", "--nth", "1"),
                ("PowerOnVM_Task", "--lose-reply", "--nth", "1"),
                ("POST pods/eviction", "--fail", "503", "--nth", "2"),
                ("POST pods/eviction", "--lose-reply", "--nth", "3"),
                ("PATCH nodes", "--fail", "500", "--nth", "4"),
            ],
        ),
    ],
)
def test_a_night_comes_through_one_fault(day: Lab, words: tuple[str, ...]) -> None:
    fault(day, *words)
    day.vgpuctl("switch", "night", "--yes").ok()
    assert sum(met(day)) > 0
    day.vgpuctl("sim", "fault", "clear").ok()
    assert day.awake() == NIGHT
    suspends = day.calls()["vcenter"]["SuspendVM_Task"]
    refused = 4 if "--end-sessions" in words else 1
    assert suspends <= 4 + refused, "a suspend whose reply was lost is not sent again before it was looked for"
    cordoned = {name for name, node in day.nodes().items() if node["spec"].get("unschedulable")}
    assert cordoned == DAY


def test_its_own_hold_is_no_other_instance(day: Lab) -> None:
    """The Lease was written, but the reply was lost: nobody waits for oneself."""
    fault(day, "PUT leases", "--lose-reply", "--nth", "1")
    ran = day.vgpuctl("switch", "night", "--yes").ok()
    assert met(day) == [1]
    assert "Another instance" not in ran.out + ran.err


def test_a_suspend_that_fails_sends_the_host_back(day: Lab) -> None:
    fault(day, "SuspendVM_Task", "--on", "worker-2", "--task-fails", "NoDiskSpace")
    ran = day.vgpuctl("switch", "night", "--yes")
    assert ran.code == 4
    assert "NoDiskSpace" in ran.out + ran.err
    assert day.awake() == DAY


@pytest.mark.parametrize("server", ["vcenter", "kubernetes"])
def test_a_server_that_was_away_for_a_moment_is_waited_for(day: Lab, server: str) -> None:
    fault(day, server, "--down", "1s")
    day.vgpuctl("switch", "night", "--yes").ok()
    assert day.awake() == NIGHT


def test_a_frozen_clock_stands_still_and_a_leap_brings_what_falls_due(day: Lab) -> None:
    clock = day.json("vgpuctl", "sim", "set", "clock", "freeze")
    assert clock["frozen"]
    day.vgpuctl("sim", "set", "person", "power-off", "worker-1").ok()
    assert day.status()["worker-1"]["power"] == "poweredOn"
    later = day.json("vgpuctl", "sim", "set", "clock", "advance", "60s")
    assert later["seconds"] == pytest.approx(clock["seconds"] + 60)
    assert day.status()["worker-1"]["power"] == "poweredOff"
    assert not day.json("vgpuctl", "sim", "set", "clock", "run")["frozen"]


def test_durations_hold_from_now_on(day: Lab) -> None:
    day.vgpuctl("sim", "set", "durations", "suspend=1s", "power-on=20ms").ok()
    told = day.json("vgpuctl", "sim", "set", "durations")
    assert (told["suspend_s"], told["power_on_s"], told["store_mib_per_s"]) == (1.0, 0.02, None)
    ran = day.vgpuctl("sim", "set", "durations", "sleep=1s")
    assert ran.code == 1
    assert "suspend_s" in ran.err


def test_a_person_does_what_people_do(day: Lab) -> None:
    day.vgpuctl("sim", "set", "person", "cordon", "worker-1").ok()
    day.vgpuctl("sim", "set", "person", "label", "worker-2", "team=a").ok()
    nodes = day.nodes()
    assert nodes["worker-1"]["spec"]["unschedulable"]
    assert nodes["worker-2"]["metadata"]["labels"]["team"] == "a"
    ran = day.vgpuctl("sim", "set", "person", "cordon", "worker-77")
    assert ran.code == 1
    assert 'nodes "worker-77" not found' in ran.err
    assert "did you mean cordon?" in day.vgpuctl("sim", "set", "person", "cordn", "worker-1").err


def test_faults_are_listed_counted_and_cleared(by_day: Lab) -> None:
    fault(by_day, "PATCH nodes", "--cut", "--nth", "3")
    fault(by_day, "vcenter", "--fail", "NotAuthenticated", "--for", "1h")
    listed = by_day.vgpuctl("sim", "fault", "list").ok().out
    assert "PATCH nodes the connection is cut (call 3); met 0 of 0 calls" in listed
    assert "1 fault cleared." in by_day.vgpuctl("sim", "fault", "clear", "1").ok().out
    assert by_day.vgpuctl("sim", "fault", "clear", "1").code == 1
    assert "1 fault cleared." in by_day.vgpuctl("sim", "fault", "clear").ok().out
    assert "No faults." in by_day.vgpuctl("sim", "fault", "list").ok().out
