"""Maintenance in virtual time: sleepers really off, their nodes still asleep, and a boot at the next shift."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from tests.support.runs import NIGHT_S, Ends, Errand
from vgpuctl.engine.ports import Answer
from vgpuctl.engine.reactor import Decision, Goal
from vgpuctl.model.fleet import Power
from vgpuctl.model.record import ASLEEP, ON_SWITCH
from vgpuctl.model.requests import PowerOffVm
from vgpuctl.operations import look_ahead
from vgpuctl.planning.pods.freezing import LINES
from vgpuctl.planning.wishes import maintenance_wish
from vgpuctl.reporting.maintenance import in_the_way, pods_given_up
from vgpuctl.sim.inventory import Durations, default_inventory

CORE = "/api/v1/namespaces/default"
DAY = tuple(f"worker-{n}" for n in range(1, 5))
NONE: frozenset[str] = frozenset()


@pytest.fixture
def night() -> Rehearsal:
    """The day's four workers sleep, suspended."""
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations())
    rehearsal.wait(60)
    assert rehearsal.switch("night").finished
    return rehearsal


def enter(world: Rehearsal, given_up: Iterable[str] = (), until_s: float = NIGHT_S) -> Decision:
    wish = maintenance_wish(world.fleet(), world.files.catalogue, ["esx-1"], frozenset(given_up))
    return world.run(Goal(wish=wish), Ends(until_s))


def powers(world: Rehearsal) -> set[Power]:
    return {world.fleet().worker(name).power for name in DAY}


def frozen(world: Rehearsal, name: str) -> str:
    """Leave a pod that asked to be frozen on the first sleeper. Return its UID."""
    tolerations = [
        {"key": key, "operator": "Exists", "effect": "NoExecute"}
        for key in ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    ]
    assert all(each["key"] in LINES for each in tolerations)
    spec = {"nodeName": "worker-1", "containers": [{"name": "main", "image": "one"}], "tolerations": tolerations}
    meta: dict[str, Any] = {"name": name, "annotations": {ON_SWITCH: "freeze"}}
    made = world.kubectl("POST", f"{CORE}/pods", {"metadata": meta, "spec": spec})
    return str(made["metadata"]["uid"])


def test_sleepers_become_really_off_and_their_nodes_still_say_that_they_sleep(night: Rehearsal) -> None:
    before = {name: night.fleet().worker(name).node for name in DAY}
    night.sent.clear()
    assert enter(night).finished
    assert (powers(night), night.awake(), night.broken) == ({Power.OFF}, {"worker-5"}, [])
    for name in DAY:
        node, former = night.fleet().worker(name).node, before[name]
        assert node is not None
        assert former is not None
        assert (node.record, node.unschedulable, node.marks) == (former.record, True, former.marks)
        assert node.record is not None
        assert node.record.state == ASLEEP
    assert sorted(night.sent) == [f"Discard/{name}/power-off" for name in DAY]
    night.sent.clear()
    assert enter(night).finished
    assert night.sent == []


def patch(world: Rehearsal) -> None:
    """The host gets another build while its workers sleep, so states from before do not resume."""
    host = world.world.estate.hosts["esx-1"]
    host.software = host.software._replace(build="24957456")


def test_without_maintenance_a_patch_leaves_states_that_do_not_resume(night: Rehearsal) -> None:
    patch(night)
    ended = night.switch("day")
    assert "was made by another version of the software of host" in str(ended.state.going_back["esx-1"])
    assert night.awake() & set(DAY) == set()


def test_after_maintenance_the_sleepers_boot_at_their_shift_as_usual(night: Rehearsal) -> None:
    enter(night)
    patch(night)
    assert all(night.world.estate.vms[name].booted is None for name in DAY)
    ended = night.switch("day")
    assert (ended.finished, ended.state.going_back) == (True, {})
    assert (night.awake(), night.cordoned() & set(DAY), night.broken) == (set(DAY), set(), [])
    assert all(night.world.estate.vms[name].booted for name in DAY)
    nodes = [night.fleet().worker(name).node for name in DAY]
    assert [node.record for node in nodes if node] == [None] * 4


def test_workers_that_run_are_left_alone_and_named(night: Rehearsal) -> None:
    enter(night)
    assert night.awake() == {"worker-5"}
    assert list(in_the_way(night.fleet(), ["esx-1"])) == [
        "worker-5 still runs on esx-1: move or stop it before the patch."
    ]


def test_a_worker_that_somebody_resumes_meanwhile_is_left_alone(night: Rehearsal) -> None:
    wish = maintenance_wish(night.fleet(), night.files.catalogue, ["esx-1"], NONE)
    night.switch("day")
    night.sent.clear()
    assert night.run(Goal(wish=wish), Ends(NIGHT_S)).finished
    assert (night.sent, night.awake()) == ([], set(DAY))


def test_a_frozen_pod_is_lost_only_if_a_person_gives_it_up(night: Rehearsal) -> None:
    uid = frozen(night, "bert")
    (pod,) = pods_given_up(night.fleet(), ["esx-1"])
    assert (pod.name, pod.uid) == ("bert", uid)
    left_out = enter(night)
    assert (left_out.finished, left_out.state.gave_up) == (True, {})
    assert night.fleet().worker("worker-1").power is Power.SUSPENDED
    assert list(in_the_way(night.fleet(), ["esx-1"]))[1:] == [
        "worker-1 is still suspended on esx-1: run the same command again."
    ]
    wish = maintenance_wish(night.fleet(), night.files.catalogue, ["esx-1"], frozenset({uid}))
    assert [remark.message for remark in look_ahead(night.fleet(), wish).remarks] == [
        "worker-1: bert sleeps with it, and is lost with the suspended state"
    ]
    assert enter(night, [uid]).finished
    assert (powers(night), night.broken) == ({Power.OFF}, [])


def test_a_pod_that_comes_after_the_yes_keeps_its_state(night: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is bound while the request is on its way, so only the last list of the node's pods can show it."""
    carry = night.carry

    def bound_meanwhile(errand: Errand) -> Answer:
        if isinstance(errand.request, PowerOffVm) and errand.request.worker == "worker-1" and errand.hung_s is None:
            monkeypatch.setattr(night, "carry", carry)
            frozen(night, "late")
        return carry(errand)

    monkeypatch.setattr(night, "carry", bound_meanwhile)
    assert enter(night, until_s=600).finished
    assert night.fleet().worker("worker-1").power is Power.SUSPENDED
    assert powers(night) == {Power.OFF, Power.SUSPENDED}
    assert night.broken == []
