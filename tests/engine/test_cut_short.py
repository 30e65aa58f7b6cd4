"""A night or a day whose process dies after a write, or that meets one fault, in virtual time: the next run ends it,
and does nothing twice."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from vgpuctl.sim.faults import KUBERNETES, VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, default_inventory

DAY = {f"worker-{n}" for n in range(1, 5)}
NIGHT = {"worker-5"}
AWAKE = {"day": DAY, "night": NIGHT}
MOVED = {"day": (1, 4), "night": (4, 1)}
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#: A night sends 22 writes, a day 12: cordons, evictions, suspends, marks, starts and uncordons.
POINTS = {"night": range(1, 23), "day": range(1, 13)}
SAMPLE = {"night": (2, 6, 9, 12, 15, 18), "day": (2, 6, 11)}
CRASHES = [
    pytest.param(shift, nth, marks=() if nth in SAMPLE[shift] else pytest.mark.long)
    for shift, points in POINTS.items()
    for nth in points
]


def before(shift: str, *, budget: bool = False) -> Rehearsal:
    """By day, or in the night before it. Without a budget each eviction that is sent is taken."""
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations())
    rehearsal.wait(60)
    if not budget:
        rehearsal.kubectl("DELETE", f"{BUDGETS}/gateway")
    if shift == "day":
        assert rehearsal.switch("night").finished
        rehearsal.wait(60)
    rehearsal.sent.clear()
    rehearsal.world.calls.reset()
    return rehearsal


def moved(rehearsal: Rehearsal) -> tuple[int, int]:
    """How often vCenter was asked to suspend a VM, and to start one."""
    asked = rehearsal.world.calls.as_dict()[VCENTER]
    return asked.get("SuspendVM_Task", 0), asked.get("PowerOnVM_Task", 0)


def ended(rehearsal: Rehearsal, shift: str) -> None:
    """Who shall be awake is, in use and without a mark of ours; a further run sends nothing."""
    assert (rehearsal.awake(), rehearsal.broken) == (AWAKE[shift], [])
    assert rehearsal.cordoned() == (DAY | NIGHT) - AWAKE[shift]
    for name in AWAKE[shift]:
        node = rehearsal.fleet().worker(name).node
        assert node is not None
        assert node.record is None
    sent = len(rehearsal.sent)
    assert rehearsal.switch(shift).finished
    assert len(rehearsal.sent) == sent


@pytest.mark.parametrize(("shift", "nth"), CRASHES)
def test_killed_after_any_write_no_vm_is_moved_and_no_pod_evicted_twice(shift: str, nth: int) -> None:
    rehearsal = before(shift)
    rehearsal.switch(shift, die_after=nth)
    assert len(rehearsal.sent) == nth, "it was to be killed"
    assert rehearsal.switch(shift).finished
    again = [key for key, times in Counter(rehearsal.sent).items() if times > 1]
    assert (again, moved(rehearsal)) == ([], MOVED[shift])
    ended(rehearsal, shift)


@pytest.mark.parametrize("nth", [8, 14, 20])
def test_killed_while_a_budget_keeps_pods_no_vm_is_moved_twice(nth: int) -> None:
    rehearsal = before("night", budget=True)
    rehearsal.switch("night", die_after=nth)
    assert rehearsal.switch("night").finished
    again = {key.partition("/")[0] for key, times in Counter(rehearsal.sent).items() if times > 1}
    assert again <= {"Drain"}
    assert moved(rehearsal) == MOVED["night"]
    ended(rehearsal, "night")


FAULTS = [
    (VCENTER, "SuspendVM_Task", How.LOSE_REPLY, {"on": "worker-2", "nth": 1}),
    (VCENTER, "SuspendVM_Task", How.CUT, {"nth": 2}),
    (VCENTER, "SuspendVM_Task", How.HANG, {"nth": 1}),
    (VCENTER, "PowerOnVM_Task", How.LOSE_REPLY, {"nth": 1}),
    (KUBERNETES, "POST pods/eviction", How.FAIL, {"nth": 2}),
    (KUBERNETES, "POST pods/eviction", How.LOSE_REPLY, {"nth": 3}),
    (KUBERNETES, "PATCH nodes", How.FAIL, {"nth": 4}),
    (KUBERNETES, "PATCH nodes", How.LOSE_REPLY, {"every": 3}),
    (KUBERNETES, "*", How.FAIL, {"every": 7}),
]


@pytest.mark.parametrize(("server", "call", "how", "more"), FAULTS)
def test_a_night_comes_through_one_fault(server: str, call: str, how: How, more: dict[str, object]) -> None:
    """At once. A suspend whose reply was lost is not sent again before it was looked for."""
    rehearsal = before("night")
    effect = Effect(how=how, what="503", seconds=0.3)
    rehearsal.world.calls.faults.add(Rule(server=server, method=call, effect=effect, **more))  # type: ignore[arg-type]
    decision = rehearsal.switch("night")
    assert (decision.finished, dict(decision.state.going_back)) == (True, {})
    (standing,) = rehearsal.world.calls.faults
    assert standing.met > 0
    rehearsal.world.calls.faults.clear(standing.id)
    assert moved(rehearsal) == (4 + ((call, how) == ("SuspendVM_Task", How.CUT)), 1)
    ended(rehearsal, "night")
