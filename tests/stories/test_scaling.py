"""Workloads that sleep in a shift, through the real processes and in virtual time with faults and crashes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.day import at_work
from tests.support.lab import Lab
from tests.support.rehearsal import Rehearsal
from vgpuctl.model.workloads import WorkloadSelector
from vgpuctl.sim.faults import KUBERNETES, VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, story

NOTEBOOKS = "default/deployment/notebooks"


def with_scale(lab: Lab, *scale: Any) -> Lab:
    """The lab's timetable, but for what sleeps at night."""
    path = lab.folder / "schedules" / "day-night.yaml"
    document = yaml.safe_load(path.read_text())
    document["shifts"]["night"]["scale"] = list(scale)
    path.write_text(yaml.safe_dump(document))
    return lab


def size(lab: Lab, name: str = "notebooks") -> tuple[int, str | None]:
    """How large it is, and what is recorded of its size."""
    found = lab.json("kubectl", "get", "deployment", name)
    return found["spec"]["replicas"], found["metadata"].get("annotations", {}).get("vgpuctl.io/replicas-before")


def pods_of(lab: Lab, app: str) -> list[str]:
    pods = lab.pods()
    return [pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"].startswith(app)]


def test_a_workload_sleeps_with_its_shift_and_wakes_with_its_last_worker(day: Lab) -> None:
    """Its pods are not evicted one by one, and none of them is Pending all night."""
    lab = with_scale(day, NOTEBOOKS)
    before = pods_of(lab, "notebooks")
    lab.calls()
    done = lab.vgpuctl("switch", "night", "--yes").ok()
    writes = lab.writes()
    assert f"{NOTEBOOKS} scaled to zero" in done.out
    assert (writes["PATCH deployments"], size(lab)) == (1, (0, "4"))
    assert writes["POST pods/eviction"] == 3, "those of the gateway"
    assert pods_of(lab, "notebooks") == []
    assert "vgpuctl.io/state" in lab.json("kubectl", "get", "deployment", "notebooks")["metadata"]["labels"]
    lab.vgpuctl("switch", "night", "--yes").ok()
    assert "PATCH deployments" not in lab.writes()
    assert f"1 workload is at zero: {NOTEBOOKS} (4 before) → day, " in lab.vgpuctl("status").ok().out
    (told,) = lab.json("vgpuctl", "status")["workloads"]
    assert (told["name"], told["replicasBefore"], told["wakes"]["shift"]) == ("notebooks", 4, "day")

    done = lab.vgpuctl("switch", "day", "--yes").ok()
    assert f"{NOTEBOOKS} scaled back" in done.out
    assert size(lab) == (4, None)
    assert lab.writes()["PATCH deployments"] == 1
    lab.settle()
    assert len(pods_of(lab, "notebooks")) == len(before)
    found = lab.json("kubectl", "get", "deployment", "notebooks")["metadata"]
    assert not [key for key in (*found.get("labels", {}), *found.get("annotations", {})) if "vgpuctl" in key]


def test_a_plan_tells_of_it_and_asks_before(day: Lab) -> None:
    lab = with_scale(day, {"selector": "app=notebooks"})
    told = lab.vgpuctl("switch", "night", "--dry-run").ok().out
    assert "1 workload is scaled to zero" in told
    assert f"Workloads\n  {NOTEBOOKS}  scale to zero (from 4)" in told
    document = lab.json("vgpuctl", "switch", "night", "--dry-run")
    step = next(step for step in document["steps"] if step["workload"])
    assert (step["name"], step["worker"], step["why"]) == (f"ScaleDown/{NOTEBOOKS}", "", "at zero in night")
    assert size(lab) == (4, None)


def test_whose_size_an_autoscaler_decides_is_refused_before_anything_is_touched(day: Lab, tmp_path: Path) -> None:
    lab = with_scale(day, NOTEBOOKS)
    path = tmp_path / "hpa.yaml"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "notebooks"}
    spec = {"scaleTargetRef": target, "maxReplicas": 8}
    autoscaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "by-load"}}
    path.write_text(yaml.safe_dump({**autoscaler, "spec": spec}))
    lab.kubectl("create", "--validate=false", "-f", str(path)).ok()
    lab.calls()
    refused = lab.vgpuctl("switch", "night", "--yes")
    assert refused.code == 3
    assert f"{NOTEBOOKS} cannot be scaled to zero: the HorizontalPodAutoscaler by-load decides its size." in refused.err
    assert lab.writes() == {}


def test_whose_size_git_declares_is_refused_too(day: Lab) -> None:
    """Told by the server's own books of who wrote what."""
    lab = with_scale(day, NOTEBOOKS)
    lab.kubectl("scale", "deployment", "notebooks", "--replicas=3").ok()
    words = ("patch", "deployment", "notebooks", "--field-manager=argocd-controller", "-p", '{"spec":{"replicas":4}}')
    lab.kubectl(*words).ok()
    refused = lab.vgpuctl("switch", "night", "--yes")
    assert refused.code == 3
    assert f"{NOTEBOOKS} cannot be scaled to zero: Argo CD sets its replicas." in refused.err
    assert "Take replicas out of what Git declares" in refused.err
    assert size(lab) == (4, None)


@pytest.mark.parametrize("nth", [3, 8, 15])
def test_whenever_it_is_killed_the_size_is_not_forgotten(day: Lab, nth: int) -> None:
    lab = with_scale(day, NOTEBOOKS)
    lab.killed_after(nth, "switch", "night", "--yes")
    lab.vgpuctl("switch", "night", "--yes").ok()
    assert size(lab) == (0, "4")
    lab.killed_after(nth, "switch", "day", "--yes")
    lab.vgpuctl("switch", "day", "--yes").ok()
    assert size(lab) == (4, None)
    lab.calls()
    lab.vgpuctl("switch", "day", "--yes").ok()
    assert lab.writes() == {}


def test_killed_and_sent_the_other_way_it_is_as_before(day: Lab) -> None:
    lab = with_scale(day, NOTEBOOKS)
    lab.killed_after(5, "switch", "night", "--yes")
    lab.vgpuctl("switch", "day", "--yes").ok()
    assert size(lab) == (4, None)
    lab.settle()
    assert len(pods_of(lab, "notebooks")) == 4


def a_day() -> Rehearsal:
    """The mission's host by day in virtual time; at night the notebooks are at zero."""
    rehearsal = Rehearsal.of(at_work(story()), Durations())
    timetable = rehearsal.files.timetables["day-night"]
    night = replace(timetable.shifts["night"], scale=(WorkloadSelector(kind="deployment", name="notebooks"),))
    timetable = replace(timetable, shifts={**timetable.shifts, "night": night})
    rehearsal.files = replace(rehearsal.files, timetables={"day-night": timetable})
    rehearsal.wait(60)
    return rehearsal


def notebooks(rehearsal: Rehearsal) -> tuple[int, bool]:
    """How large the workload is, and whether it bears our mark."""
    workload = rehearsal.fleet().workloads[NOTEBOOKS]
    return workload.replicas, workload.scaled is not None


FAULTS = {
    "fails": Effect(how=How.FAIL, what="503"),
    "is in conflict": Effect(how=How.FAIL, what="409"),
    "loses its reply": Effect(how=How.LOSE_REPLY),
    "hangs": Effect(how=How.HANG, seconds=30.0),
}


@pytest.mark.parametrize("effect", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("shift", ["night", "day"])
def test_whatever_becomes_of_the_patch_it_is_done_once(effect: Effect, shift: str) -> None:
    rehearsal = a_day()
    if shift == "day":
        assert rehearsal.switch("night").finished
    rehearsal.world.calls.faults.add(Rule(server=KUBERNETES, method="PATCH deployments", nth=1, effect=effect))
    assert rehearsal.switch(shift).finished
    assert notebooks(rehearsal) == {"night": (0, True), "day": (4, False)}[shift]
    assert rehearsal.broken == []


def test_a_night_that_cannot_come_gives_it_its_size_back() -> None:
    rehearsal = a_day()
    day = rehearsal.awake()
    never = Effect(how=How.TASK_FAILS, what="NoCompatibleHost")
    rehearsal.world.calls.faults.add(Rule(server=VCENTER, method="PowerOnVM_Task", on="worker-5", effect=never))
    assert rehearsal.switch("night").memory.going_back
    assert (rehearsal.awake(), notebooks(rehearsal), rehearsal.broken) == (day, (4, False), [])


@pytest.mark.parametrize("die_after", range(0, 28, 3))
def test_a_crash_and_then_a_night_that_cannot_come_gives_it_its_size_back(die_after: int) -> None:
    rehearsal = a_day()
    day = rehearsal.awake()
    never = Effect(how=How.TASK_FAILS, what="NoCompatibleHost")
    rehearsal.world.calls.faults.add(Rule(server=VCENTER, method="PowerOnVM_Task", on="worker-5", effect=never))
    rehearsal.switch("night", die_after=die_after)
    rehearsal.wait(60)
    ended = rehearsal.switch("night")
    assert (ended.finished, bool(ended.memory.going_back)) == (True, True)
    assert (rehearsal.awake(), notebooks(rehearsal), rehearsal.broken) == (day, (4, False), [])


def test_a_workload_that_may_not_be_patched_leaves_the_day_as_it_was() -> None:
    rehearsal = a_day()
    day = rehearsal.awake()
    forbidden = Effect(how=How.FAIL, what="403")
    rehearsal.world.calls.faults.add(Rule(server=KUBERNETES, method="PATCH deployments", effect=forbidden))
    ended = rehearsal.switch("night")
    assert f"{NOTEBOOKS} could not scale to zero" in ended.memory.going_back["esx-1"]
    assert not [key for key in rehearsal.sent if key.startswith("Drain/")]
    assert (rehearsal.awake(), notebooks(rehearsal), rehearsal.cordoned() & day) == (day, (4, False), set())
