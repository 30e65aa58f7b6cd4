"""Which calls a fault meets: told by rules, counted for each rule, and the same again with the same seed."""

from __future__ import annotations

from typing import Any

import pytest

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.control.fault_rules import InvalidRequest, rule_of
from vgpuctl.sim.faults import Effect, Faults, How, Rule

CUT = Effect(how=How.CUT)


def met(faults: Faults, calls: int, method: str = "SuspendVM_Task", *names: str) -> list[int]:
    return [number for number in range(1, calls + 1) if faults.effect_on("vcenter", method, names)]


def faulted(**rule: Any) -> Faults:
    faults = Faults()
    faults.add(Rule(server="vcenter", effect=CUT, **rule))
    return faults


def test_without_more_words_each_call_of_the_method_is_met() -> None:
    faults = faulted(method="SuspendVM_Task")
    assert met(faults, 3) == [1, 2, 3]
    assert met(faults, 3, "PowerOnVM_Task") == []
    assert faults.effect_on("kubernetes", "SuspendVM_Task", ()) is None


@pytest.mark.parametrize(
    ("which", "expected"),
    [({"nth": 3}, [3]), ({"every": 2}, [2, 4, 6]), ({"every": 2, "times": 2}, [2, 4]), ({"times": 1}, [1])],
)
def test_rules_choose_among_the_calls(which: dict[str, int], expected: list[int]) -> None:
    assert met(faulted(**which), 7) == expected


def test_only_calls_on_the_named_object_count() -> None:
    faults = faulted(on="worker-*", nth=2)
    assert met(faults, 5, "SuspendVM_Task", "vm-9", "infra-1") == []
    assert met(faults, 5, "SuspendVM_Task", "vm-1", "worker-1") == [2]


def test_a_chance_meets_some_and_the_same_ones_again() -> None:
    first = met(faulted(chance=0.3, seed=7), 200)
    assert met(faulted(chance=0.3, seed=7), 200) == first
    assert met(faulted(chance=0.3, seed=8), 200) != first
    assert 30 < len(first) < 90


def test_every_rule_counts_and_the_first_that_meets_acts() -> None:
    faults = faulted(nth=2)
    faults.add(Rule(server="vcenter", effect=Effect(how=How.LOSE_REPLY), nth=2))
    assert faults.effect_on("vcenter", "Login", ()) is None
    effect = faults.effect_on("vcenter", "Login", ())
    assert effect is CUT
    assert [each.concerned for each in faults] == [2, 2]


def test_a_server_that_is_down_counts_no_calls() -> None:
    calls = Calls()
    calls.count("vcenter", "SuspendVM_Task", "worker-1")
    down = calls.faults.add(Rule(server="vcenter", effect=Effect(how=How.DOWN, seconds=2)))
    assert calls.count("vcenter", "SuspendVM_Task", "worker-2") == down.rule.effect
    assert calls.as_dict() == {"vcenter": {"SuspendVM_Task": 1}}


def test_a_person_acts_and_the_call_goes_on() -> None:
    calls = Calls()
    did: list[str] = []
    calls.act_as_person = did.append
    calls.faults.add(Rule(server="kubernetes", effect=Effect(how=How.PERSON, what="cordon worker-1"), nth=2))
    assert [calls.count("kubernetes", "GET nodes") for _ in range(3)] == [None, None, None]
    assert did == ["cordon worker-1"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"target": "SuspendVMTask", "how": "cut"}, "did you mean SuspendVM_Task?"),
        ({"target": "PATCH node", "how": "cut"}, "did you mean PATCH nodes?"),
        ({"target": "SuspendVM_Task", "how": "fail", "what": "NoDiskspace"}, "did you mean NoDiskSpace?"),
        ({"target": "PATCH nodes", "how": "fail", "what": "NoDiskSpace"}, "must be from 400 to 599"),
        ({"target": "kubernetes", "how": "end-sessions"}, "works only on vCenter's calls"),
        ({"target": "Login", "how": "task-hangs"}, "Login starts none"),
        ({"target": "vcenter", "how": "down"}, "needs a time"),
        ({"target": "vcenter", "how": "vanish"}, "no effect is called"),
        ({"target": "vcenter", "how": "cut", "nth": 1, "every": 2}, "only one"),
        ({"target": "vcenter", "how": "cut", "nth": 0}, "at least 1"),
        ({"target": "vcenter", "how": "cut", "chance": 1.5}, "at most 1"),
    ],
)
def test_what_makes_no_sense_is_told(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        rule_of(asked)
