"""What nodes say before, during and after a night, in virtual time: labels, cordons and marks, ours and others'."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from vgpuctl.kube.client import Object
from vgpuctl.model.fleet import Fleet
from vgpuctl.planning.wishes import Provisioning
from vgpuctl.sim.inventory import Durations, default_inventory

DAY = {f"worker-{n}" for n in range(1, 5)}
NODES = "/api/v1/nodes"
EXCLUDED = "node.kubernetes.io/exclude-disruption"
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
KEPT = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


def made_ready() -> Rehearsal:
    """An estate where no VM had a vGPU, after `provision`, `label-nodes` and `switch day`."""
    rehearsal = Rehearsal.of(default_inventory(), Durations())
    assert rehearsal.provision(Provisioning()).finished
    assert rehearsal.label().finished
    assert rehearsal.switch("day").finished
    rehearsal.wait(60)
    return rehearsal


@pytest.fixture
def day() -> Rehearsal:
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations())
    rehearsal.wait(60)
    return rehearsal


def nodes(rehearsal: Rehearsal) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in rehearsal.kubectl("GET", NODES)["items"]}


def label_of(rehearsal: Rehearsal, node: str) -> str | None:
    label: str | None = nodes(rehearsal)[node]["metadata"]["labels"].get("vgpu.type")
    return label


def patch(rehearsal: Rehearsal, node: str, body: Object) -> None:
    rehearsal.kubectl("PATCH", f"{NODES}/{node}", body)


def test_a_colleague_with_kubectl_sees_the_night_and_nothing_of_ours_stays() -> None:
    rehearsal = made_ready()
    for name in nodes(rehearsal):
        expected = {"infra-1": None, "worker-5": "v100-16q-16GB"}.get(name, "v100-4q-4GB")
        assert label_of(rehearsal, name) == expected
    assert rehearsal.switch("night").finished
    found = nodes(rehearsal)
    for name in DAY:
        assert found[name]["spec"]["unschedulable"] is True
        assert found[name]["metadata"]["labels"]["vgpuctl.io/state"] == "asleep"
        assert found[name]["metadata"]["annotations"]["vgpuctl.io/for"] == "night"
    for name in ("worker-5", "infra-1"):
        metadata = found[name]["metadata"]
        assert "unschedulable" not in found[name]["spec"]
        assert "vgpuctl.io/state" not in metadata["labels"]
        assert not [key for key in metadata.get("annotations", {}) if "vgpuctl.io" in key]
    facts = {key: value for key, value in found["worker-5"]["metadata"]["labels"].items() if "vgpuctl.io" in key}
    assert facts == {
        "vgpuctl.io/card": "V100-16",
        "vgpuctl.io/frame-mib": "16384",
        "vgpuctl.io/host": "esx-1",
        "vgpuctl.io/vgpu": "grid_v100-16q",
    }
    assert not [key for key in found["infra-1"]["metadata"]["labels"] if "vgpuctl.io" in key]
    assert rehearsal.broken == []


def test_another_ones_cordon_outlives_the_night(day: Rehearsal) -> None:
    patch(day, "worker-3", {"spec": {"unschedulable": True}})
    assert day.switch("night").finished
    assert day.switch("day").finished
    assert (day.awake(), day.cordoned() & DAY, day.broken) == (DAY, {"worker-3"}, [])


def test_a_wrong_label_is_put_right_and_others_labels_stay(day: Rehearsal) -> None:
    patch(day, "worker-1", {"metadata": {"labels": {"vgpu.type": "wrong"}}})
    patch(day, "worker-2", {"metadata": {"labels": {"theirs": "kept"}}})
    assert day.label().finished
    assert label_of(day, "worker-1") == "v100-4q-4GB"
    assert nodes(day)["worker-2"]["metadata"]["labels"]["theirs"] == "kept"


def test_a_node_deleted_while_it_sleeps_is_labelled_anew(day: Rehearsal) -> None:
    assert day.switch("night").finished
    day.kubectl("DELETE", f"{NODES}/worker-2")
    assert day.switch("day").finished
    assert label_of(day, "worker-2") == "v100-4q-4GB"
    assert day.awake() == DAY


def test_sleepers_say_until_when_and_are_spared_by_others_until_they_wake(day: Rehearsal) -> None:
    """Another's mark stays."""
    patch(day, "worker-2", {"metadata": {"annotations": {KEPT: "true"}}})
    assert day.switch("night").finished
    for name in ("worker-1", "worker-2"):
        said = nodes(day)[name]["metadata"]
        assert said["labels"][EXCLUDED] == said["annotations"][KEPT] == "true"
        assert said["annotations"]["vgpuctl.io/why"] == "night of day-night"
        assert datetime.fromisoformat(said["annotations"]["vgpuctl.io/until"]) > day.world.clock.utc()
    assert day.switch("day").finished
    for name in ("worker-1", "worker-2"):
        said = nodes(day)[name]["metadata"]
        assert EXCLUDED not in said["labels"]
        annotations = said.get("annotations", {})
        assert [key for key in annotations if key.startswith("vgpuctl.io/")] == []
        assert (KEPT in annotations) == (name == "worker-2")


def test_no_node_is_uncordoned_before_the_cloud_provider_has_taken_its_taint_off() -> None:
    rehearsal = Rehearsal.of(replace(at_work(default_inventory()), cloud_provider=True), Durations())
    rehearsal.wait(60)
    assert rehearsal.switch("night").finished
    rehearsal.wait(8 * 3600)
    asleep = rehearsal.fleet().workers
    assert all(SHUTDOWN in worker.node.taints for name, worker in asleep.items() if name in DAY and worker.node)
    ready_but_tainted: set[str] = set()

    def watch(fleet: Fleet) -> None:
        for name, worker in fleet.workers.items():
            if name in DAY and worker.node and worker.node.ready and SHUTDOWN in worker.node.taints:
                ready_but_tainted.add(name)
                assert worker.node.unschedulable, "it was uncordoned too early"

    rehearsal.watch = watch
    assert rehearsal.switch("day").finished
    assert (rehearsal.awake(), rehearsal.cordoned() & DAY, rehearsal.broken) == (DAY, set(), [])
    assert ready_but_tainted
