"""The journal through the real servers and commands: what was done can be read from anywhere, whatever befell it."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET

from tests.support.lab import Lab


def entry(lab: Lab, number: str = "last") -> dict[str, object]:
    return dict(lab.json("vgpuctl", "history", "show", number))


def test_a_switch_is_told_step_by_step_and_forecasts_the_next(day: Lab) -> None:
    assert "There are no switches yet." in day.vgpuctl("history").ok().out
    day.vgpuctl("switch", "night", "--yes").ok()
    day.vgpuctl("switch", "day", "--yes").ok()
    listed = day.json("vgpuctl", "history", "--limit", "1")["items"]
    assert [(item["id"], item["wish"], item["outcome"]) for item in listed] == [(2, "day", "done")]
    night = day.json("vgpuctl", "history", "show", "1")
    steps = {f"{step['step']}/{step['worker']}": step for step in night["steps"]}
    assert all(step["endedSeconds"] is not None for step in steps.values())
    assert steps["PowerOn/worker-5"]["after"].startswith("Suspend/worker-")
    assert night["timetable"] == "day-night"
    kept = json.dumps(day.json("kubectl", "get", "configmaps", "-n", "vgpuctl", "-l", "vgpuctl.io/kind=history"))
    assert "PowerOn" in kept
    assert day.env["GOVC_PASSWORD"] not in kept
    plan = day.json("vgpuctl", "switch", "night", "--dry-run")
    assert plan["earlierSwitches"] == 1
    known = {f"{step['name']}": step["expectedSeconds"] for step in plan["steps"]}
    assert known["Suspend/worker-1"] <= 2.0, "it was seen, and need not be assumed"


def test_it_takes_no_vcenter_and_no_files(day: Lab) -> None:
    day.vgpuctl("switch", "night", "--yes").ok()
    day.more_env = {"GOVC_URL": "https://127.0.0.1:1", "VGPUCTL_PROFILES": "/nowhere"}
    picture = day.folder / "night.svg"
    shown = day.vgpuctl("history", "show", "last", "-o", "wide", "--svg", str(picture)).ok().out
    assert "Longest way: " in shown
    assert "worker-5  esx-1  power on" in shown
    assert ET.fromstring(picture.read_text()).tag.endswith("svg")
    missing = day.vgpuctl("history", "show", "7")
    assert (missing.code, "Known: 1 to 1, or last." in missing.err) == (2, True)


def test_what_changes_only_labels_or_nothing_is_not_told(day: Lab) -> None:
    day.kubectl("label", "node", "worker-1", "vgpu.type=wrong", "--overwrite").ok()
    day.vgpuctl("label-nodes").ok()
    day.vgpuctl("switch", "day", "--yes").ok()
    assert day.json("vgpuctl", "history")["items"] == []


def test_one_that_was_killed_is_cut_short_and_the_next_has_its_own_entry(day: Lab) -> None:
    killed = ("tests.support.killed", "kill_after", "8", "once it is recorded")
    assert day.vgpuctl("switch", "night", "--yes", first=killed).code == -9
    deadline = time.monotonic() + 10
    while entry(day)["outcome"] == "running" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert entry(day)["outcome"] == "cut short"
    day.vgpuctl("switch", "night", "--yes").ok()
    listed = day.json("vgpuctl", "history")["items"]
    assert [item["outcome"] for item in listed] == ["cut short", "done"]


def test_a_journal_that_cannot_be_written_leaves_the_switch_as_it_is(day: Lab) -> None:
    day.vgpuctl("switch", "night", "--yes").ok()
    day.fault("POST configmaps", "fail", "403")
    ran = day.vgpuctl("switch", "day", "--yes").ok()
    assert ran.out.count("The history will not show this switch: ") == 1
    assert "worker-5" not in day.awake()


def test_where_it_cannot_be_written_down_from_where_hosts_go_none_of_them_goes(day: Lab) -> None:
    day.fault("PATCH configmaps", "fail", "403")
    awake = day.awake()
    day.calls()
    assert day.vgpuctl("switch", "night", "--yes").code == 5
    assert day.awake() == awake
    assert not {"PATCH nodes", "SuspendVM_Task", "POST pods/eviction"} & set(day.writes())


def test_the_forecast_does_without_where_it_cannot_be_read(day: Lab) -> None:
    day.fault("GET configmaps", "fail", "403")
    assert "(estimated)" in day.vgpuctl("switch", "night", "--dry-run").ok().out
    assert day.vgpuctl("history").code == 5


def test_nothing_stands_on_it(day: Lab) -> None:
    day.vgpuctl("switch", "night", "--yes").ok()
    day.kubectl("delete", "configmaps", "-n", "vgpuctl", "-l", "vgpuctl.io/kind=history").ok()
    day.vgpuctl("switch", "day", "--yes").ok()
    assert json.loads(day.vgpuctl("history", "-o", "json").ok().out)["items"][0]["id"] == 1
