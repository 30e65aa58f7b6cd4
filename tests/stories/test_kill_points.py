"""The real process, ended with SIGKILL after each write in turn: the next run goes on, and nothing is done twice.

In virtual time: tests/engine/test_cut_short.py.
"""

from __future__ import annotations

import pytest

from tests.support.lab import Lab

DAY = {"worker-1", "worker-2", "worker-3", "worker-4"}
NAMESPACES = "/api/v1/namespaces"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
AWAKE = {"day": DAY, "night": {"worker-5"}}

#: A switch to night writes 24 times (evictions that meet a budget aside), one to day 14 times. The very first write
#: makes the namespace, before there is a Lease.
SAMPLE = 8
POINTS = range(1, 31)
SURELY_BEFORE_THE_END = 14
PAST_THE_END = 30


def leaving(lab: Lab, shift: str) -> list[str]:
    """The pods on those who go to sleep."""
    sleepers = lab.awake() - AWAKE[shift]
    pods = lab.pods()
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") in sleepers]


def switch_over_a_crash(lab: Lab, shift: str, nth: int) -> None:
    pods, budgets = leaving(lab, shift), lab.get(BUDGETS)["items"]
    before_the_lease = int("vgpuctl" not in {each["metadata"]["name"] for each in lab.get(NAMESPACES)["items"]})
    lab.calls()
    code = lab.killed_after(nth, "switch", shift, "--yes")
    assert code in {0, -9}
    assert code == -9 or nth > SURELY_BEFORE_THE_END, "it was to be killed"
    assert code == 0 or nth < PAST_THE_END, "there are more writes than points"
    again = lab.vgpuctl("switch", shift, "--yes").ok()
    left_a_lease = code == -9 and nth > before_the_lease
    assert ("holds the Lease. Waiting up to 1 s" in again.out) == (left_a_lease and "already" not in again.out)
    writes = lab.writes()
    assert lab.awake() == AWAKE[shift]
    moved = {"night": (4, 1), "day": (1, 4)}[shift]
    assert (writes["SuspendVM_Task"], writes["PowerOnVM_Task"]) == moved, "no VM is moved twice"
    assert writes["PATCH nodes"] <= 3 * 5
    assert writes["POST pods/eviction"] == len(pods) or budgets, "no pod is evicted twice"
    lab.vgpuctl("switch", shift, "--yes").ok()
    assert lab.writes() == {}
    lab.settle()
    for name in AWAKE[shift]:
        node = lab.nodes()[name]
        assert "unschedulable" not in node["spec"]
        assert "vgpuctl.io/for" not in node["metadata"].get("annotations", {})


def without_budgets(lab: Lab) -> None:
    """Then each eviction that is sent is taken, so that they can be counted."""
    lab.kubectl("delete", "poddisruptionbudgets", "--all").ok()


def test_a_sample_of_kill_points(day: Lab) -> None:
    without_budgets(day)
    switch_over_a_crash(day, "night", SAMPLE)


@pytest.mark.long
def test_a_kill_point_while_a_budget_keeps_pods(day: Lab) -> None:
    switch_over_a_crash(day, "night", 20)


@pytest.mark.long
@pytest.mark.parametrize("nth", POINTS)
def test_every_kill_point_of_a_switch(day: Lab, nth: int) -> None:
    without_budgets(day)
    switch_over_a_crash(day, "night", nth)
    switch_over_a_crash(day, "day", nth)


@pytest.mark.long
@pytest.mark.parametrize("nth", range(1, 9))
def test_every_kill_point_of_provision_and_label_nodes(lab: Lab, nth: int) -> None:
    for words, call, times in ((("provision", "--yes"), "ReconfigVM_Task", 5), (("label-nodes",), "PATCH nodes", 5)):
        lab.calls()
        assert lab.killed_after(nth, *words) in {0, -9}
        lab.vgpuctl(*words).ok()
        assert lab.writes()[call] == times
        lab.vgpuctl(*words).ok()
        assert lab.writes() == {}
