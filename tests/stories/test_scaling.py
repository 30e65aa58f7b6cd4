"""Workloads that sleep in a shift, through real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.depth import only_long
from tests.support.lab import Lab

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
    assert "Remove replicas from its manifest in Git" in refused.err
    assert size(lab) == (4, None)


@pytest.mark.parametrize("nth", [8, only_long(3), only_long(15)])
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
