"""What a switch failed on, in virtual time: its own way back is no change, and neither is an hour that passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from vgpuctl.engine.reactor import Decision
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.planning.signs import at_rest, changed_since, pods_failed_on
from vgpuctl.sim.faults import VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, default_inventory

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
HOUR_S = 3600.0


def a_day(hosts: int = 1) -> Rehearsal:
    rehearsal = Rehearsal.of(at_work(default_inventory(hosts=hosts)), Durations())
    rehearsal.wait(60)
    rehearsal.drain(DrainOptions(force=True, timeout_s=120))
    return rehearsal


def held(day: Rehearsal) -> str:
    """The UID of a pod that a budget holds."""
    spec = {"nodeName": "worker-2", "containers": [{"name": "main", "image": "one"}]}
    body = {"metadata": {"name": "held", "labels": {"app": "held"}}, "spec": spec}
    made = day.kubectl("POST", "/api/v1/namespaces/default/pods", body)
    day.wait(5)
    rule = {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}}
    day.kubectl("POST", BUDGETS, {"metadata": {"name": "held"}, "spec": rule})
    day.wait(1)
    return str(made["metadata"]["uid"])


def rest(day: Rehearsal, ended: Decision) -> dict[str, str]:
    assert ended.finished
    assert "esx-1" in ended.state.going_back
    return at_rest(day.fleet(), ended.state.failed_on["esx-1"])


def test_a_drain_that_failed_hangs_on_its_pod_and_the_budget_over_it() -> None:
    day = a_day()
    uid = held(day)
    signs = rest(day, day.switch("night"))
    assert pods_failed_on(signs) == {uid}
    assert {key for key in signs if key.startswith(("pod", "budget"))} == {
        "pod default/held on worker-2",
        "budget default/held",
    }
    day.wait(HOUR_S)
    assert changed_since(day.fleet(), signs) == ()
    day.kubectl("DELETE", f"{BUDGETS}/held")
    assert changed_since(day.fleet(), signs) == ("budget default/held is gone",)


@pytest.mark.parametrize(("call", "worker"), [("SuspendVM_Task", "worker-2"), ("PowerOnVM_Task", "worker-5")])
def test_what_a_switch_and_its_way_back_did_themselves_is_no_change(call: str, worker: str) -> None:
    day = a_day()
    full = Effect(how=How.TASK_FAILS, what="NoDiskSpace")
    day.world.calls.faults.add(Rule(server=VCENTER, method=call, on=worker, effect=full))
    signs = rest(day, day.switch("night"))
    assert {key for key in signs if key.startswith("worker")} == {f"worker {worker}"}
    day.wait(HOUR_S)
    assert changed_since(day.fleet(), signs) == ()


def test_a_host_that_may_not_go_on_alone_hangs_on_what_the_other_one_failed_on() -> None:
    day = a_day(hosts=2)
    held(day)
    for name, each in day.files.timetables.items():
        together = replace(each, conduct=replace(each.conduct, all_or_nothing=True))
        day.files = replace(day.files, timetables={**day.files.timetables, name: together})
    failed_on = day.switch("night").state.failed_on
    assert failed_on["esx-2"] == failed_on["esx-1"]
    assert "budget default/held" in failed_on["esx-2"]
