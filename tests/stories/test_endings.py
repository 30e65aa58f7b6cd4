"""How commands end: each exit code, with words that help."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.support.lab import Lab


def bare_pod(lab: Lab, node: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bare", "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    }
    path = lab.folder / "bare.json"
    path.write_text(json.dumps(manifest))
    lab.kubectl("create", "--validate=false", "-f", str(path)).ok()


def hold(lab: Lab) -> None:
    """All gateways are on workers, and the one other place is cordoned, which may pass: the drain begins, and lasts."""
    lab.kubectl("cordon", "infra-1").ok()
    lab.kubectl("delete", "pods", "-l", "app=gateway", "--field-selector=spec.nodeName=infra-1").ok()
    lab.settle()


def let_go(lab: Lab) -> None:
    lab.kubectl("uncordon", "infra-1").ok()


def test_without_a_terminal_and_without_yes_nothing_is_touched(by_day: Lab) -> None:
    ran = by_day.vgpuctl("switch", "night")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert by_day.writes() == {}


def test_a_shift_that_is_not_there_is_a_usage_error_with_a_suggestion(by_day: Lab) -> None:
    ran = by_day.vgpuctl("switch", "nigth")
    assert ran.code == 2
    assert "did you mean night?" in ran.err


def test_all_faults_of_a_file_are_told_at_once(by_day: Lab, tmp_path: Path) -> None:
    path = tmp_path / "profiles.yaml"
    path.write_text("version: 2\nprofile: {}\nworkers: {worker-1: v100}\n")
    ran = by_day.vgpuctl("status", "--profiles", str(path))
    assert ran.code == 2
    for told in ("version: must be 1", "profile: is not a known key; did you mean profiles?", "no profile v100"):
        assert told in ran.err


def test_workers_without_their_vgpu_are_not_woken(lab: Lab) -> None:
    lab.calls()
    ran = lab.vgpuctl("switch", "day", "--yes")
    assert ran.code == 3
    assert "vgpuctl provision" in ran.err
    assert "Nothing was changed" in ran.err
    assert lab.writes() == {}


def test_pods_that_may_not_be_deleted_refuse_the_switch(day: Lab) -> None:
    bare_pod(day, "worker-1")
    day.calls()
    ran = day.vgpuctl("switch", "night", "--yes")
    assert ran.code == 3
    assert "bare has no controller" in ran.err
    assert day.writes() == {}


def test_a_card_that_another_keeps_refuses_the_switch(by_day: Lab, tmp_path: Path) -> None:
    """worker-4 is in no timetable any more, but stays on the card: the night has no place."""
    profiles, schedules = tmp_path / "profiles.yaml", tmp_path / "day-night.yaml"
    text = (by_day.folder / "profiles.yaml").read_text()
    profiles.write_text(text.replace("worker-[1-4]", "worker-[1-3]"))
    text = (by_day.folder / "schedules" / "day-night.yaml").read_text()
    schedules.write_text(text.replace("profiles: [v100-4q-4GB]", "workers: ['worker-[1-3]']"))
    ran = by_day.vgpuctl("switch", "night", "--yes", "--profiles", str(profiles), "--schedules", str(schedules))
    assert ran.code == 3
    assert "0000:3b:00.0 keeps worker-4 (grid_v100-4q)" in ran.err
    assert by_day.writes() == {}


def test_a_budget_that_can_never_be_met_refuses_the_switch(day: Lab) -> None:
    budget = json.dumps({"spec": {"maxUnavailable": 0}})
    day.kubectl("patch", "pdb", "gateway", "--type=merge", "-p", budget).ok()
    day.calls()
    ran = day.vgpuctl("switch", "night", "--yes")
    assert ran.code == 3
    assert "budget gateway lets none of its 3 pods go" in ran.err
    assert day.writes() == {}


def test_a_drain_that_a_budget_holds_goes_back(day: Lab) -> None:
    hold(day)
    schedule = day.folder / "schedules" / "day-night.yaml"
    schedule.write_text(schedule.read_text().replace("timeout: 10m", "timeout: 2s"))
    ran = day.vgpuctl("switch", "night", "--yes")
    assert ran.code == 4, ran
    assert "waits for budget gateway (0 of 1 left); gateway-" in ran.err
    assert "belongs to ReplicaSet/gateway-" in ran.err
    assert "may never be drained together: budget gateway keeps 2 of 3 pods" in ran.out
    assert day.awake() == {"worker-1", "worker-2", "worker-3", "worker-4"}
    for node in day.nodes().values():
        assert "unschedulable" not in node["spec"] or node["metadata"]["name"] in {"worker-5", "infra-1"}


def test_servers_that_do_not_answer(by_day: Lab) -> None:
    by_day.more_env = {"GOVC_URL": "https://127.0.0.1:1/sdk", "VGPUCTL_CONNECT_SECONDS": "0.1"}
    ran = by_day.vgpuctl("status")
    assert ran.code == 5
    assert "does not answer" in ran.err


def test_a_wrong_password_is_told_and_not_printed(by_day: Lab) -> None:
    by_day.more_env = {"GOVC_PASSWORD": "not-the-secret-1"}
    ran = by_day.vgpuctl("status")
    assert ran.code == 5
    assert "does not accept this user and password" in ran.err
    assert "not-the-secret-1" not in ran.out + ran.err


def test_a_certificate_is_verified(by_day: Lab) -> None:
    by_day.more_env = {"GOVC_TLS_CA_CERTS": ""}
    ran = by_day.vgpuctl("status")
    assert ran.code == 5
    assert "certificate" in ran.err


def test_another_instance_at_work_is_seen(day: Lab) -> None:
    hold(day)
    first = day.start("switch", "night", "--yes")
    try:
        wait_for_lease(day)
        ran = day.vgpuctl("switch", "night", "--yes")
        assert ran.code == 6
        assert "Another instance is at work" in ran.err
    finally:
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=30) == 130


def wait_for_lease(lab: Lab) -> None:
    wait_for(lab, "lease", "vgpuctl", "-n", "vgpuctl", "-o", "jsonpath={.spec.holderIdentity}")


def wait_for_cordon(lab: Lab) -> None:
    """From now on servers are waited out; before it, nothing was touched, and the command ends."""
    wait_for(lab, "node", "worker-1", "-o", "jsonpath={.spec.unschedulable}")


def wait_for(lab: Lab, *what: str) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = lab.kubectl("get", *what)
        if found.code == 0 and found.out:
            return
    raise AssertionError(f"in vain: {' '.join(what)}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["Ctrl-C", "closed terminal"])
def test_a_signal_stops_after_what_is_in_flight_and_another_run_goes_on(day: Lab, number: int) -> None:
    hold(day)
    first = day.start("switch", "night", "--yes")
    wait_for_cordon(day)
    first.send_signal(number)
    _, err = first.communicate(timeout=30)
    assert first.returncode == 130
    assert "To go on, run the same command again" in err
    assert day.holder() == ""
    let_go(day)
    day.vgpuctl("switch", "night", "--yes").ok()
    assert day.awake() == {"worker-5"}


def test_a_switch_whose_reader_has_seen_enough_ends_well(day: Lab) -> None:
    """As `vgpuctl switch night --yes | head -1`."""
    running = day.start("switch", "night", "--yes")
    assert running.stdout is not None
    running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=60) == 0
    assert day.awake() == {"worker-5"}


@pytest.mark.parametrize(("output", "code"), [("table", 0), ("json", 1)])
def test_a_switch_whose_output_fills_the_disk_ends_well_and_says_so(day: Lab, output: str, code: int) -> None:
    """The document was asked for and is lost: that is a failure, though not of the switch."""
    with Path("/dev/full").open("w") as full:
        done = day.vgpuctl("switch", "night", "--yes", "-o", output, stdout=full)
    assert done.code == code
    assert "could not be written: No space left on device" in done.err
    assert day.awake() == {"worker-5"}


def test_who_stops_while_the_lease_is_waited_for_takes_and_writes_nothing(day: Lab) -> None:
    """The holder is alive, but renews its Lease more seldom than we look."""
    day.hold_the_lease("laptop/1/aaaa", seconds=60)
    before = day.json("kubectl", "get", "configmaps,leases,events", "-A")["items"]
    waiting = day.start("switch", "night", "--yes")
    assert waiting.stdout is not None
    assert "Waiting up to 60 s" in waiting.stdout.readline()
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=30)
    assert waiting.returncode == 130
    assert "Nothing was changed." in err
    ours = [each for each in before if each["metadata"]["name"].startswith("vgpuctl")]
    after = day.json("kubectl", "get", "configmaps,leases,events", "-A")["items"]
    assert [each for each in after if each["metadata"]["name"].startswith("vgpuctl")] == ours


def test_servers_that_fall_silent_in_the_middle_are_waited_out(day: Lab) -> None:
    """Nothing is written while the Lease cannot be renewed; when they answer again it goes on by itself."""
    hold(day)
    running = day.start("switch", "night", "--yes")
    wait_for_cordon(day)
    servers = int((day.folder / "pid").read_text())
    os.kill(servers, signal.SIGSTOP)
    try:
        assert running.stdout is not None
        assert any("cannot be heard" in line for line in running.stdout)
    finally:
        os.kill(servers, signal.SIGCONT)
    let_go(day)
    assert running.wait(timeout=60) == 0
    assert day.awake() == {"worker-5"}


def test_without_a_terminal_progress_is_one_line_an_event(day: Lab) -> None:
    out = day.vgpuctl("switch", "night", "--yes").ok().out
    assert re.search(r"^\d\d:\d\d:\d\d worker-1 suspended( \(\d+ s\))?$", out, re.MULTILINE)
    assert re.search(r"^night since \d\d:\d\d:\d\d, after \d+ s\.$", out, re.MULTILINE)
    assert "\x1b" not in out


@pytest.mark.parametrize("words", [("switch", "night"), ("provision",), ("label-nodes",)])
def test_json_is_one_document(lab: Lab, words: tuple[str, ...]) -> None:
    lab.vgpuctl("provision", "--yes").ok()
    yes = () if words == ("label-nodes",) else ("--yes",)
    report = json.loads(lab.vgpuctl(*words, *yes, "-o", "json").ok().out)
    assert report["kind"] == "Report"
    assert report["apiVersion"] == "vgpuctl.io/v1"
