"""The product through servers that misbehave: what was asked for happens once, and the night still comes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.depth import only_long
from tests.support.lab import Lab
from vgpuctl.sim.faults import How

NIGHT, DAY = {"worker-5"}, {"worker-1", "worker-2", "worker-3", "worker-4"}


@pytest.mark.parametrize(
    ("target", "how", "more"),
    [
        ("vcenter", How.END_SESSIONS, {"nth": 12}),
        only_long("kubernetes", How.FAIL, {"what": "503", "every": 7}),
        only_long("SuspendVM_Task", How.LOSE_REPLY, {"on": "worker-2", "nth": 1}),
        only_long("PATCH nodes", How.LOSE_REPLY, {"every": 3}),
        only_long("WaitForUpdatesEx", How.CUT, {"every": 4, "times": 3}),
        only_long("SuspendVM_Task", How.CUT, {"nth": 2}),
        only_long("SuspendVM_Task", How.HANG, {"nth": 1, "seconds": 0.3}),
        only_long("PowerOnVM_Task", How.LOSE_REPLY, {"nth": 1}),
        only_long("POST pods/eviction", How.FAIL, {"what": "503", "nth": 2}),
        only_long("POST pods/eviction", How.LOSE_REPLY, {"nth": 3}),
        only_long("PATCH nodes", How.FAIL, {"what": "500", "nth": 4}),
        only_long("kubernetes", How.CUT, {"every": 5, "times": 6}),
    ],
)
def test_a_night_comes_through_one_fault(day: Lab, target: str, how: How, more: dict[str, Any]) -> None:
    day.fault(target, how, **more)
    day.vgpuctl("switch", "night", "--yes").ok()
    assert sum(day.met()) > 0
    day.clear_faults()
    suspends = day.calls()["vcenter"]["SuspendVM_Task"]
    refused = 4 if how is How.END_SESSIONS else 1
    assert suspends <= 4 + refused, "a suspend whose reply was lost is not sent again before it was looked for"
    assert day.awake() == NIGHT
    cordoned = {name for name, node in day.nodes().items() if node["spec"].get("unschedulable")}
    assert cordoned == DAY


def test_kubernetes_may_ask_to_wait(day: Lab) -> None:
    day.fault("PATCH nodes", "fail", "429", seconds=2, on="worker-1", times=1)
    day.calls()
    ran = day.vgpuctl("label-nodes").ok()
    assert "worker-1 labelling: Kubernetes asks to wait 2 s" in ran.out
    assert day.writes()["PATCH nodes"] == 5 + 1


def test_its_own_hold_is_no_other_instance(day: Lab) -> None:
    """The Lease was written, but the reply was lost: nobody waits for oneself."""
    day.fault("POST leases", How.LOSE_REPLY, nth=1)
    ran = day.vgpuctl("switch", "night", "--yes").ok()
    assert day.met() == [1]
    assert "Another instance" not in ran.out + ran.err


@pytest.mark.parametrize("server", ["vcenter", only_long("kubernetes")])
def test_a_server_that_was_away_for_a_moment_is_waited_for(day: Lab, server: str) -> None:
    day.fault(server, How.DOWN, seconds=1)
    day.vgpuctl("switch", "night", "--yes").ok()
    assert day.awake() == NIGHT


@pytest.mark.parametrize("server", ["vcenter", only_long("kubernetes")])
def test_a_server_that_goes_away_in_the_middle_is_waited_for(day: Lab, server: str) -> None:
    """Suspends are under way when it goes, and have ended when it comes back."""
    day.durations(suspend_s=1)
    with ThreadPoolExecutor(1) as pool:
        switching = pool.submit(day.vgpuctl, "switch", "night", "--yes")
        while not _asked(day).get("SuspendVM_Task"):
            assert not switching.done(), switching.result().out
        day.fault(server, How.DOWN, seconds=2)
        switching.result().ok()
    asked = _asked(day)
    assert (day.awake(), asked["SuspendVM_Task"], asked["PowerOnVM_Task"]) == (NIGHT, 4, 1)


def _asked(lab: Lab) -> dict[str, int]:
    return lab.calls(reset=False).get("vcenter", {})
