"""Workers that Cluster API manages, through real processes: their Machines are shielded before the sleep, and freed
once they are back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.lab import Lab
from vgpuctl.model.machine import SHIELD_ANNOTATION

DAY = {"worker-1", "worker-2", "worker-3", "worker-4"}
OURS = {SHIELD_ANNOTATION: "true", "vgpuctl.io/marks": "skip-remediation"}
THEIRS = {SHIELD_ANNOTATION: ""}
BY_DAY = {"infra-1": {}, **{name: {} for name in sorted(DAY)}, "worker-5": THEIRS}
BY_NIGHT = {**BY_DAY, **dict.fromkeys(sorted(DAY), OURS)}
Annotations = dict[str, dict[str, str]]


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    """worker-5 is off, and somebody has exempted its Machine by hand."""
    found = make_lab("--instant", "--scenario", "cluster-api")
    found.settle()
    found.calls()
    return found


def vgpu_types_of(lab: Lab) -> Annotations:
    items = lab.json("kubectl", "get", "machines")["items"]
    return {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in items}


def test_sleepers_are_shielded_and_freed_and_others_marks_stay(lab: Lab) -> None:
    assert vgpu_types_of(lab) == BY_DAY
    lab.calls()
    lab.vgpuctl("switch", "night", "--yes").ok()
    assert lab.calls()["kubernetes"]["PATCH machines"] == len(DAY)
    assert vgpu_types_of(lab) == BY_NIGHT
    lab.vgpuctl("switch", "day", "--yes").ok()
    assert lab.calls()["kubernetes"]["PATCH machines"] == len(DAY)
    assert vgpu_types_of(lab) == BY_DAY
    lab.vgpuctl("switch", "day", "--yes").ok()
    assert lab.writes() == {}


@pytest.mark.long
@pytest.mark.parametrize("nth", [11, 16])
def test_whatever_write_it_is_killed_after_the_marks_come_and_go(lab: Lab, nth: int) -> None:
    for shift, marks in (("night", BY_NIGHT), ("day", BY_DAY)):
        assert lab.killed_after(nth, "switch", shift, "--yes") == -9
        lab.vgpuctl("switch", shift, "--yes").ok()
        assert vgpu_types_of(lab) == marks
        lab.settle()


def test_where_machines_may_not_be_seen_the_plan_says_so_and_the_night_comes(lab: Lab) -> None:
    lab.fault("GET machines", "fail", "403")
    ran = lab.vgpuctl("switch", "night", "--yes").ok()
    assert "The Machines of worker-[1-4] cannot be marked from here" in ran.out + ran.err
    assert told_by_store(lab) == BY_DAY


def test_where_machines_may_not_be_patched_after_all_the_night_comes(lab: Lab) -> None:
    lab.fault("PATCH machines", "fail", "403")
    lab.vgpuctl("switch", "night", "--yes").ok()
    assert vgpu_types_of(lab) == BY_DAY


def told_by_store(lab: Lab) -> Annotations:
    lab.clear_faults()
    return vgpu_types_of(lab)
