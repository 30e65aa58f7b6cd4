"""`status` against servers: what it costs, what it does without, and what it says while the world changes."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.forked import Forked
from tests.support.lab import Lab

WAITING = """
apiVersion: v1
kind: Namespace
metadata: {name: research}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: research}
spec: {hard: {requests.nvidia.com/gpu: 4}}
---
apiVersion: v1
kind: Pod
metadata: {name: bert-0, namespace: research}
spec:
  nodeSelector: {vgpu.type: v100-16q-16GB}
  containers: [{name: main, image: one, resources: {limits: {nvidia.com/gpu: 3}}}]
"""


@contextmanager
def watching(lab: Lab, *words: str) -> Iterator[Forked]:
    """`status -w` in a process of its own; what it prints is read line by line."""
    with lab.start("status", "-w", *words) as process:
        yield process


def line(process: Forked, has: str) -> str:
    """The next line that has this; the process is ended by the test's own time limit if none comes."""
    assert process.stdout is not None
    for found in process.stdout:
        if has in found:
            return found
    raise AssertionError(f"it ended without {has!r}")


@pytest.fixture
def research(day: Lab, tmp_path: Path) -> Lab:
    """A day on which somebody's pod waits for the night, and counts against his quota."""
    path = tmp_path / "waiting.yaml"
    path.write_text(WAITING)
    day.kubectl("apply", "-f", str(path)).ok()
    day.calls()
    return day


def test_a_look_costs_the_same_calls_and_one_list_where_pods_wait(research: Lab) -> None:
    found = research.json("vgpuctl", "status")
    assert found["quotas"] == [{"namespace": "research", "name": "gpus", "used": 3, "hard": 4, "heldByWaiting": 3}]
    calls = research.calls()["kubernetes"]
    assert calls["GET resourcequotas"] == 1
    assert set(calls.values()) == {1}
    research.kubectl("delete", "pods,jobs", "--all").ok()
    research.kubectl("delete", "pod", "bert-0", "-n", "research").ok()
    research.calls()
    assert research.json("vgpuctl", "status")["waiting"] == []
    assert "GET resourcequotas" not in research.calls()["kubernetes"]


def test_without_the_right_to_see_quotas_it_shows_the_rest(research: Lab) -> None:
    research.fault("GET resourcequotas", "fail", "403")
    found = research.json("vgpuctl", "status")
    assert found["quotas"] is None
    assert [pod["name"] for pod in found["waiting"]].count("bert-0") == 1


AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: "agent:1"}]}
"""


def test_a_rollout_that_sleepers_hold_up_is_named(day: Lab, tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(AGENT)
    day.kubectl("apply", "-f", str(path)).ok()
    day.settle()
    day.vgpuctl("switch", "night", "--yes").ok()

    def held_up() -> list[dict[str, str]]:
        return [each for each in day.json("vgpuctl", "status")["outOfStep"] if each["kind"] == "daemonset"]

    assert held_up() == []
    path.write_text(AGENT.replace("agent:1", "agent:2"))
    day.kubectl("apply", "-f", str(path)).ok()
    (held,) = next(filter(None, (held_up() for _ in range(20))))
    assert held["name"] == "default/agent"
    assert re.search(r"stands at \d of \d nodes, because worker-1, worker-2, worker-3 and 1 more sleep", held["what"])


def test_json_and_yaml_are_the_same_document(by_day: Lab) -> None:
    one, other = by_day.json("vgpuctl", "status"), yaml.safe_load(by_day.vgpuctl("status", "-o", "yaml").ok().out)
    assert [found.pop("observedAt") is not None for found in (one, other)] == [True, True]
    assert one == other


def test_names_are_for_other_commands(by_day: Lab) -> None:
    names = by_day.vgpuctl("status", "-o", "name", "-l", "vgpu.type=v100-4q-4GB").ok().out.split()
    assert names == [f"worker/worker-{n}" for n in range(1, 5)]
    assert [w["name"] for w in by_day.json("vgpuctl", "status", *names[:2])["workers"]] == ["worker-1", "worker-2"]


def test_a_name_that_is_none_is_a_fault_of_the_words(by_day: Lab) -> None:
    ran = by_day.vgpuctl("status", "worker-44")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean worker-4?" in ran.err
    assert by_day.vgpuctl("status", "-l", "a in b").code == 2


def test_watching_is_told_and_asks_for_nothing(research: Lab) -> None:
    """Each change arrives by the streams that stand open: after the lists and watches there is no other call."""
    with watching(research) as process:
        line(process, "out of step")
        _until_streams_stand(research)
        for verb, change in (("cordon", "ready → cordoned"), ("uncordon", "cordoned → ready")):
            research.person(f"{verb} worker-3")
            assert f"worker-3 node {change}" in line(process, "worker-3")
        research.person("delete-pod research/bert-0")
        assert "gone: waits for v100-16q-16GB" in line(process, "research/bert-0")
        assert research.calls().keys() <= {"vcenter"}
    assert research.calls().get("vcenter", {}).keys() <= {"WaitForUpdatesEx", "Logout"}


def _until_streams_stand(lab: Lab) -> None:
    """A list and a watch of each kind: both are GETs. Where hosts go is read once."""
    seen: Counter[str] = Counter()
    for _ in range(50):
        seen.update(lab.calls().get("kubernetes", {}))
        seen.pop("GET configmaps", None)
        if len(seen) == KINDS and set(seen.values()) == {2}:
            return
    raise AssertionError(f"the streams do not stand: {seen}")


#: Nodes, pods, leases, budgets, and where pods wait, quotas.
KINDS = 6


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_is_ended_as_kubectl_is(by_day: Lab, number: signal.Signals) -> None:
    """Quietly, with the code of an interruption, and with its session closed."""
    with watching(by_day, "-o", "name") as process:
        line(process, "worker/worker-5")
        by_day.calls()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (130, "", "")
    assert by_day.calls()["vcenter"]["Logout"] == 1


def test_each_change_is_a_document_on_a_line(day: Lab) -> None:
    with watching(day, "-o", "json", "worker-3") as process:
        first: dict[str, Any] = json.loads(line(process, "Status"))
        day.person("cordon worker-3")
        second = json.loads(line(process, '"cordoned"'))
    assert [w["node"]["state"] for found in (first, second) for w in found["workers"]] == ["ready", "cordoned"]
    assert second["workers"][0]["node"]["cordonedBy"]


def test_a_server_that_is_gone_is_said_and_since_when(day: Lab) -> None:
    with watching(day, "-o", "json") as process:
        line(process, "Status")
        day.fault("kubernetes", "down", seconds=1)
        silent = json.loads(line(process, '"server": "Kubernetes"'))
        assert silent["stale"][0]["since"]
        assert json.loads(line(process, '"stale": []'))["workers"]


def test_a_switch_is_seen_as_it_goes(day: Lab) -> None:
    with watching(day) as process:
        line(process, "out of step")
        day.vgpuctl("switch", "night", "--yes").ok()
        wanted, told = {"worker-1 ", "day-night shift day → ", "worker-5 VM"}, []
        while wanted:
            told.append(line(process, ""))
            wanted = {has for has in wanted if has not in told[-1]}
    assert all(len(each.split()[0].split(":")) == 3 for each in told if each.strip())
